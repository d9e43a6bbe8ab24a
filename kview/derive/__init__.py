"""Figures calculated from snapshots, as pure functions."""
