"""What is known of work whose cluster, or whose database, went away."""
