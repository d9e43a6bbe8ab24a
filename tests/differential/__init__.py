"""The same scripts of faults and traffic on the simulated and on a real cluster."""
