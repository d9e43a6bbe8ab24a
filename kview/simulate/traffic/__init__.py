"""Simulated clients: producers and consumer groups that use the cluster's own leaders and coordinators."""
