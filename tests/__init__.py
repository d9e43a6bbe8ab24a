"""Tests, by room, and what they share."""
