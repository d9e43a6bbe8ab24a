"""What the tables show: rows made from a view, on demand, as lines with roles. Pure."""
