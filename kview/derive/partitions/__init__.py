"""What is calculated about partitions, their logs and their topics."""
