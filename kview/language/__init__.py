"""Turns facts into words: the sentences that kview says, but for those of its lessons."""
