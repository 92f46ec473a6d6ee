"""Runs attempts as processes of the agent's own user, on this machine.

What runs inside the agent is here; what outlives it is in `monitor`. Between the two stand
files in the attempt's directory (`layout`) and one FIFO: no memory is shared, so that either side
may be killed at any instant. This is not an isolation boundary: see `docs/local-cluster.md`.
"""
