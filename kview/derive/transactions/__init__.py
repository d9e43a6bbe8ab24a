"""Transactions that hold back what others may read."""
