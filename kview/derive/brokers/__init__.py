"""What is calculated about brokers and controllers."""
