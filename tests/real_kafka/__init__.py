"""A real Apache Kafka cluster on this machine: jars fetched once, brokers and controllers as processes."""
