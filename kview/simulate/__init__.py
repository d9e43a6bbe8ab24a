"""A simulated Kafka cluster, built as a deterministic engine."""
