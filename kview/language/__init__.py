"""Facts as words: the one room in which the sentences that kview says are written."""
