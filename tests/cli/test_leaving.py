"""A process ends with the exit code of its work, whatever threads do meanwhile."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHIN = """
import atexit, sys
from verderer.cli.leaving import ends_at_once
class Grave:
    def __del__(self): print("taken to pieces")
kept = Grave()
with ends_at_once():
    atexit.register(print, "a handler")
    {body}
"""


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("pass", 0),
        ("sys.exit()", 0),
        ("sys.exit(7)", 7),
        ("sys.exit('words')", 1),
        ("raise ValueError('a defect')", 1),
    ],
)
def test_the_exit_code_and_all_that_was_printed_come_out(body: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHIN.format(body=body)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == code
    assert done.stdout == "a handler\n", "and the interpreter was not taken to pieces"
    assert ("words" in done.stderr) == ("words" in body)
    assert ("a defect" in done.stderr) == ("defect" in body)
