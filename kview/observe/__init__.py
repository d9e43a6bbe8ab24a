"""Asks a cluster over Kafka's protocol, read-only, and builds snapshots from the answers."""
