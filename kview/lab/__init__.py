"""Our own simulated cluster: typed messages over a control channel, and lines that people type."""
