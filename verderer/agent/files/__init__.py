"""Bytes between working directories and the object store, by granted addresses."""
