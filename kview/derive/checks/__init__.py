"""The judgement of `kview check`: what is wrong now, what could go wrong, and what could not be judged."""
