"""What people do from a terminal: each module is a few commands, or something that they share.

Modules are cheap to import, since every start of the command line imports them all; whatever is
heavier than typer is imported inside functions. Results go to standard output, everything else to
standard error.
"""
