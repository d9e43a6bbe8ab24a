"""Puts the parts of a run together: the source of views, the threads and child processes, and the output."""
