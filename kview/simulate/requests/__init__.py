"""What clients ask of a simulated cluster: records, topics, configurations and administration."""
