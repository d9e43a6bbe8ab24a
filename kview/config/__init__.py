"""Reads a user's theme files into typed values."""
