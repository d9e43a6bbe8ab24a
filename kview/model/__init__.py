"""What kview knows: the snapshot, its tables, events, findings, ids and units; names and numpy types only."""
