"""Array codecs for the messages that carry one row per partition, next to kafka-python's own codec."""
