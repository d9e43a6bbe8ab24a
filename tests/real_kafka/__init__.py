"""A real Apache Kafka cluster on this machine. Its jars are downloaded once, and its nodes run as
processes."""
