"""Puts a run together: the source of the views, the threads and child processes behind it, and the output."""
