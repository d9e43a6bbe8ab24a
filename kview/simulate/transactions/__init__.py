"""Transactions: the coordinators and their log. Sources: KIP-98, KIP-447 and KIP-890."""
