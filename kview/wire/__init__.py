"""Array codecs for messages with one row per partition, next to kafka-python's own codec."""
