"""Lessons on a simulated cluster: what they say, what happens in them, and whether the cluster did it."""
