"""Applications that process each record exactly once, as they are written for any cluster: Java's own clients
on the simulated one, while its brokers crash."""
