"""The door for people: pages rendered on the server.

A page is a function, a context and one template. What the viewer may see is decided before the
template.
"""
