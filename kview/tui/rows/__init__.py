"""The rows of the tables, made from a view on demand, as lines with roles. Everything here is pure."""
