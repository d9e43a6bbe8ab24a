"""The controllers of a simulated cluster: the quorum, the metadata, and the active controller's decisions."""
