"""Coordinators in general: each keeps a state in an internal topic of which its broker leads partitions."""
