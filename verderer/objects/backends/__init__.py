"""What stands behind a store: the library's clients, a sorted directory, errors, uploads."""
