"""The agent's process for each kind of cluster, how it joins, and how it is installed."""
