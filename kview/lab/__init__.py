"""Faults on our own simulated cluster: the commands people type, the line protocol, and its two ends."""
