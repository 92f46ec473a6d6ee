"""What is read of a cluster, as values: objects, amounts, times, devices and nodes."""
