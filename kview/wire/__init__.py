"""Array codecs for the messages that carry a row per partition, beside kafka-python's own codec."""
