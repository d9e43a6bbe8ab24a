"""Faults on a cluster that is ours: the words people type, the line protocol, and its two ends."""
