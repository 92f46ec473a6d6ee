"""`make demo`'s program, in a fresh folder, with nobody at the terminal."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.e2e.commands import clean_environment
from tests.house.sources import ROOT

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300), pytest.mark.xdist_group("chaos")]


def test_the_demo_trains_a_model_says_where_it_is_and_leaves_nothing_running(folder: Path) -> None:
    data = folder / "demo"
    environment = clean_environment(folder / "home") | {"VERDERER_DEMO_DIR": str(data)}
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/digits/demo.py")],
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout
    assert len(re.findall(r"^train-\d +\d+ +0\.\d+ +\d\.\d{4} +0\.\d{4}$", said, re.MULTILINE)) == 4
    best = re.search(r"^Best +train-\d: (\d+\.\d)% of the test images", said, re.MULTILINE)
    assert best
    assert float(best[1]) > 90
    model = re.search(r"^Model +(/\S+)$", said, re.MULTILINE)
    assert model
    assert any(path.suffix == ".pkl" for path in Path(model[1]).rglob("*"))
    assert re.search(r"^Page +http://127\.0\.0\.1:\d+/runs/\w{13}$", said, re.MULTILINE)
    assert re.search(r"^Login +admin@localhost  \S{12,}$", said, re.MULTILINE)
    assert f"verderer up --data-dir {data}" in said, "how to look at the page afterwards"
    left = [p.info["cmdline"] for p in psutil.process_iter(["cmdline"])]
    assert not [words for words in left if any(str(data) in word for word in words or [])]
