"""Theme files as typed values, and the child processes that kview starts."""
