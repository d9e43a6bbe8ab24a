"""Which faults go on, what followed from them, and when they end."""
