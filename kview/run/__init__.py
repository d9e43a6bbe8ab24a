"""Puts a run together: where pictures come from, the threads and children behind them, and where they go."""
