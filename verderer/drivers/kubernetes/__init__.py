"""The `kubernetes` driver: an attempt is an object of ours that says what is owed, and one Job.

`intention` and `manifests` say what is written, `seen` what is read, `deciding` decides from
values alone; `calls`, `watching`, `launching`, `keeper` and `logs` do the talking.
"""
