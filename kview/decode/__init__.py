"""Bytes with a schema become bounded trees. Pure. Hostile bytes and schemas end in a failure."""
