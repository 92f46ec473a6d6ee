"""Keeps bytes: logs, artifacts, models, data sets; a local directory or S3 behind one interface."""
