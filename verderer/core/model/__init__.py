"""The nouns: frozen values with the field's standard names, and their tables of moves."""
