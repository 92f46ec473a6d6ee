"""People, how they log in, their tokens, and the projects that they are in."""
