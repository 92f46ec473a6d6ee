"""One file for each thing that is measured; each gives figures."""
