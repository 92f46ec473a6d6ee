"""A control plane that stands still for longer than a lease: only leased work stops meanwhile."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

import pytest

from tests.chaos.platform import check_rows, platform, rows, submit, wait_for

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(400), pytest.mark.xdist_group("chaos")]

DOCUMENT = """
metadata: {name: cut}
steps:
- name: leased
  onClusterLost: rerun
  resources: {requests: {cpu: 50m}}
  script: |
    echo $$ > %(diary)s/leased.$VERDERER_ATTEMPT
    sleep 300
- name: free
  resources: {requests: {cpu: 50m}}
  script: |
    echo $$ > %(diary)s/free.$VERDERER_ATTEMPT
    sleep 300
"""


def alive(file: Path) -> bool:
    return Path(f"/proc/{file.read_text().strip()}/cmdline").exists()


def test_leased_work_stops_while_nobody_is_heard_and_starts_again(folder: Path) -> None:
    diary = folder / "diary"
    diary.mkdir(mode=0o777)
    leased, free = diary / "leased.1", diary / "free.1"
    with platform(folder / "data") as there:
        run = asyncio.run(submit(there.dsn, DOCUMENT % {"diary": diary}))
        both = lambda: all(f.exists() and f.read_text().strip() for f in (leased, free))  # noqa: E731
        wait_for(both, 30, "both steps run")
        servers = there.role("server")
        for server in servers:
            server.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        try:
            wait_for(lambda: not alive(leased), 110, "the leased step is stopped")
            assert time.monotonic() - began > 40.0, "not before its lease was over"
            assert alive(free), "what waits goes on"
        finally:
            for server in servers:
                server.send_signal(signal.SIGCONT)
        wait_for(lambda: (diary / "leased.2").exists(), 90, "it starts again")
        assert alive(free)
        assert not (diary / "free.2").exists()
        found = asyncio.run(
            rows(
                there.dsn,
                "SELECT a.number, a.state::text FROM attempts a JOIN steps s ON s.id = a.step_id"
                " WHERE s.run_id = $1 AND s.name = 'leased' ORDER BY 1",
                run,
            )
        )
        assert found[0]["state"] == "lost"
        asyncio.run(check_rows(there.dsn))
