"""One small process per attempt that outlives the agent, and the spawner that forks it.

These processes stay for as long as the work does, so their modules import a handful of light
standard modules and each other, and never `typing`, `dataclasses`, `pathlib`, `asyncio` or anything
that brings those in. `spawner` says what they do; the agent may import from here, not the reverse.
"""
