"""Requests to the API server: where it is, what is asked, what its refusals mean."""
