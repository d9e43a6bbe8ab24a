"""The classic consumer group coordinator, whose state is stored in the logs of `__consumer_offsets`."""
