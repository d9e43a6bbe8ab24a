"""A simulated Kafka cluster, as a deterministic engine."""
