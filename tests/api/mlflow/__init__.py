"""The tracking API, asked by MLflow's own client over a real socket and by hand without one."""
