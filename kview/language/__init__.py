"""Turns facts into words. Every sentence that kview says is written in this room."""
