"""How the command line looks: tables that fit, states, times, errors, and clean terminals.

Nothing here speaks to a server. Everything that came from elsewhere is cleaned before it is shown.
"""
