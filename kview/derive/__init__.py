"""Pure functions over snapshots: rates, lag, verdicts and events, and the fold that combines them."""
