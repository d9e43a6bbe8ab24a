"""Decoding: bytes and schemas, good and hostile."""
