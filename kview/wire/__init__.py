"""Fast codecs for messages with one row per partition, used instead of kafka-python's own codec."""
