"""Simulated clients: producers and consumer groups on the cluster's own leaders and coordinators."""
