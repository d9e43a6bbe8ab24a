"""What Spark's Python workers run: roll-ups of segments, and figures of roll-ups.

This package imports numpy, pyarrow, the standard library and `kview.model.sums`, and travels to the workers
of a cluster, which have no kview.
"""
