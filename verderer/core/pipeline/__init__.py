"""The pipeline document: what it may say, what it means, and what each of its steps launches.

Belongs here: reading the YAML (`parse`), its frozen values (`spec`), its expansion into instances
and edges (`expand`), its expressions, and the JSON Schema that describes it. Does not: where or
when a step runs, who may run it, or how its process is started.
"""
