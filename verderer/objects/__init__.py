"""Keeps bytes: logs, artifacts, models, data sets; a local directory or S3 behind one interface.

Belongs here: the store (`store`, `config`, `keys`), short-lived access to it (`grants`, `serving`),
the log format (`logs`, `chunking`) and its readers (`log_reading`), the collector of `tmp/` and the
bucket's settings. Does not: what an object means or who may see it, and any HTTP framework.
"""
