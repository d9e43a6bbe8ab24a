"""The classic consumer group coordinator, which keeps its state in the logs of `__consumer_offsets`."""
