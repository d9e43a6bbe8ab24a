"""The brokers of a simulated cluster: their processes, replicas, replication and retention."""
