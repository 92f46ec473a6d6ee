"""The real processes that are measured, on a data folder of their own."""
