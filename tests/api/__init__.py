"""The API, route by route."""
