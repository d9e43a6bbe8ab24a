"""A failover read from the screen: the same body on the simulated cluster and on a real Kafka cluster."""
