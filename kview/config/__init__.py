"""A user's files: profiles, client.properties, themes and keys, read to typed values."""
