"""Tests of kview.recording."""
