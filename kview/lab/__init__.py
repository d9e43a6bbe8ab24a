"""Faults on a cluster that is ours: typed messages over a control channel, and lines that people type."""
