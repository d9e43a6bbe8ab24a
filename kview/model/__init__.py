"""The data that kview works on: snapshots, events, findings, ids and units, as names and numpy types."""
