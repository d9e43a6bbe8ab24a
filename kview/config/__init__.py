"""Theme files as typed values, and the environment of child processes."""
