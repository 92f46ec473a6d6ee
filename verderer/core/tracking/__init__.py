"""What training code reports, in the terms of MLflow: what it may be called, said and asked.

Belongs here: limits and names, samples and which of them is the latest, the language of searches,
page tokens, safe artifact paths, and the thinning of curves. Does not: SQL, HTTP, and the JSON
that clients exchange.
"""
