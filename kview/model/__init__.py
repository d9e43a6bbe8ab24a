"""The data types that all rooms share: snapshots, events, findings, failures, faults, notices, ids and
units."""
