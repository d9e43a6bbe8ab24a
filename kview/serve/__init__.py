"""The simulated cluster on the network.

Each broker has a listener that speaks Kafka's protocol, and the wall clock drives the engine.
"""
