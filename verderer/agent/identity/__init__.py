"""Who the agent is: its key, and the credential that it fetches with it."""
