"""Which records somebody looks for: the language of `--where`, and what it says of a record."""
