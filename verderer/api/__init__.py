"""The door for machines: users' API, agents' sync, MLflow-compatible API.

A route is a signature and one call: parse, authorise, one use case, serialise.
"""
