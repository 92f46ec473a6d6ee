"""Let an agent in, and lock it out."""
