"""Pure functions over snapshots: rates, lag, verdicts, events; and the fold that puts them together."""
