"""Makes and unmakes nodes and clusters."""
