"""The simulated cluster on the wire: one listener a broker, Kafka's protocol, the engine driven by the wall
clock."""
