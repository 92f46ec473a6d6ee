"""An agent in a process of its own, for tests that kill it: reads lines, starts what they ask.

`python -m tests.drivers.agent_process ROOT`: each input line is a step number and a script; it
answers each with `accepted`. It is never asked to end: it is killed.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.drivers.rigs import plain_order
from verderer.drivers.local.driver import LocalDriver


async def main() -> None:
    driver = LocalDriver(Path(sys.argv[1]))
    await driver.observe()
    print(driver._roster.spawner_pid, flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        step, _, script = line.strip().partition(" ")
        await driver.start(plain_order(int(step), script=script), workspace="")
        print("accepted", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
