"""`/api/v1/runs`: submit runs, look at them and their parts, read their output, change them.

`documents` turns rows into documents, `found` finds what an address names, the rest are routes.
"""
