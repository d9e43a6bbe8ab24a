"""Widgets that draw lines with roles: the table, and panels of lines."""
