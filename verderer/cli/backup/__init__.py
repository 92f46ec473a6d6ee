"""Backups: a folder with the database, the objects, and a manifest that says if it is whole."""
