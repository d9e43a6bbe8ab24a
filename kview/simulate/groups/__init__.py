"""The classic consumer group coordinator, its state on the logs of `__consumer_offsets`."""
