"""Snapshots on disk: segments, the flight recorder's ring, the reader and the replay."""
