"""Messages of Kafka's protocol that kafka-python has no schema for, in its form of Kafka's own schemas."""
