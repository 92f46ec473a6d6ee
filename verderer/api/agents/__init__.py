"""The door for agents: hello, the long poll for orders, reports, and addresses of objects."""
