"""The product from outside: real processes, its own command line, real peers."""
