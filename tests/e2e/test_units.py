"""The unit of `docs/deploy.md` means to systemd what it says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.sources import ROOT


def test_systemd_understands_the_unit_of_the_page(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("NOT TESTED: no systemd-analyze, so nothing read the unit")
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    unit = page.partition("```ini\n")[2].partition("```")[0]
    assert "/opt/verderer/bin/verderer server" in unit
    file = tmp_path / "verderer-server.service"
    file.write_text(unit.replace("/opt/verderer/bin/verderer", sys.executable))
    command = [program, "verify", "--man=no", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
