"""Share groups at the leaders of their partitions, and the coordinators that keep their state."""
