"""The front door: reads settings, builds everything, starts a process; nobody imports it."""
