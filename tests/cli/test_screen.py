"""What commands draw at 80 columns, to the character, and what never reaches a terminal."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from verderer.cli.commands.runs import print_run_table
from verderer.cli.commands.watching import Picture, draw
from verderer.cli.commands.why import explain
from verderer.cli.screen.failures import print_error, print_problems
from verderer.cli.screen.tables import Cell, Column, table
from verderer.cli.screen.terminal import clean, clean_output
from verderer.cli.screen.words import ago, size, span
from verderer.core.errors import Invalid, Problem
from verderer.wire.runs import ReasonOut, RunOut, StepChange, WhyOut

NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FORCE_COLOR", raising=False)


def run(state: str, name: str, minutes: float, took: float | None, **more: object) -> RunOut:
    began = NOW - timedelta(minutes=minutes)
    values = {
        "id": "06x3k9v2m4t7q",
        "name": name,
        "project": "vision",
        "state": state,
        "labels": {},
        "steps": 12,
        "open": 0 if took is not None else 4,
        "failed": 1 if state == "failed" else 0,
        "actor": "user:ana@example.org",
        "cloned_from": None,
        "created_at": began,
        "started_at": began if state != "queued" else None,
        "ended_at": began + timedelta(seconds=took) if took is not None else None,
    }
    return RunOut(**values | more)  # type: ignore[arg-type]


def step(index: int, name: str, state: str, **more: object) -> StepChange:
    began = NOW - timedelta(seconds=75)
    values = {
        "index": index,
        "name": name,
        "state": state,
        "attempt": 1,
        "cluster": "proj-a-gpu" if state != "waiting" else "",
        "note": "",
        "started_at": began if state not in ("waiting", "starting") else None,
        "ended_at": NOW - timedelta(seconds=3) if state in ("succeeded", "failed") else None,
    }
    return StepChange(**values | more)  # type: ignore[arg-type]


RUNS = [
    run("running", "train-digits", 5, None),
    run("failed", "a-pipeline-with-a-name-that-is-much-longer-than-others", 90, 3605),
    run("queued", "数字识别", 60 * 24 * 40, None),
]


def test_runs_at_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_run_table(RUNS, empty="", now=NOW)
    assert (
        capsys.readouterr().out
        == """\
RUN            STATE      NAME                     PROJECT  STEPS  TOOK      AGE
06x3k9v2m4t7q  ● running  train-digits             vision    8/12    5m   5m ago
06x3k9v2m4t7q  ✕ failed   a-pipeline-with-a-name…  vision   12/12    1h   1h ago
06x3k9v2m4t7q  ○ queued   数字识别                 vision    8/12        40d ago
"""
    )


def test_runs_on_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    print_run_table(RUNS, empty="", now=NOW)
    assert (
        capsys.readouterr().out
        == """\
RUN            STATE      NAME
06x3k9v2m4t7q  ● running  train-digits
06x3k9v2m4t7q  ✕ failed   a-pipeline-with-a-name-…
06x3k9v2m4t7q  ○ queued   数字识别
"""
    )


def test_a_list_for_another_program_is_not_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    print_run_table(RUNS, empty="", now=NOW)
    out = capsys.readouterr().out
    assert "a-pipeline-with-a-name-that-is-much-longer-than-others" in out
    assert "ana@example.org" in out


def test_a_run_that_is_watched() -> None:
    steps = [
        step(0, "prepare", "succeeded"),
        step(1, "train", "running", attempt=2),
        step(2, "evaluate-everything-with-great-care", "waiting"),
        step(3, "report", "failed", note="exited with code 3"),
        step(4, "gone", "unknown", cluster="proj-b-tpu"),
    ]
    picture = Picture(
        run=run("running", "train-digits", 5, None, steps=5, open=3),
        steps={one.index: one for one in steps},
        why={
            2: "proj-a-gpu: asks 8 nvidia.com/gpu; 4 of 64 is free",
            4: "proj-b-tpu: its agent has been silent for 240 s",
        },
    )
    assert (
        "\n".join(draw(picture, columns=80, lines=24, now=NOW))
        == """\
● running  train-digits  06x3k9v2m4t7q  2/5 steps  5m
STEP                           STATE         TOOK  WHERE, OR WHY NOT
prepare                        ✓ succeeded  1m12s  proj-a-gpu
train                          ● running    1m15s  proj-a-gpu, attempt 2
evaluate-everything-with-gre…  ○ waiting           proj-a-gpu: asks 8 nvidia.co…
report                         ✕ failed     1m12s  proj-a-gpu, exited with code…
gone                           ? unknown    1m15s  proj-b-tpu: its agent has be…"""
    )


def test_more_steps_than_lines_show_what_needs_a_look_first() -> None:
    states = ["succeeded"] * 30 + ["running"] * 3 + ["waiting"] * 6 + ["failed"]
    steps = {i: step(i, f"s-{i}", state) for i, state in enumerate(states)}
    picture = Picture(
        run=run("running", "wide", 5, None, steps=40, open=9),
        steps=steps,
        away="connection refused",
    )
    lines = draw(picture, columns=60, lines=11, now=NOW)
    assert len(lines) <= 11
    assert [line.split()[0] for line in lines[2:-2]] == [
        "s-30",
        "s-31",
        "s-32",
        "s-33",
        "s-34",
        "s-39",
    ]
    assert lines[-2] == "… and 34 steps more: 30 succeeded, 4 waiting"
    assert lines[-1] == "! the server is away: connection refused"


def test_why_a_step_waits() -> None:
    one = WhyOut(
        index=0,
        step="train",
        state="waiting",
        since=NOW - timedelta(minutes=12),
        requests={"memory": "64Gi", "nvidia.com/gpu": "8"},
        nodes=2,
        reasons=[
            ReasonOut(
                code="capacity",
                cluster="proj-b-tpu",
                message="asks 16 nvidia.com/gpu; 4 of 64 nvidia.com/gpu is free",
                change="12 more nvidia.com/gpu free would start it",
            ),
            ReasonOut(
                code="node_too_small",
                cluster="lab",
                message="asks 8 nvidia.com/gpu on one node; the largest has 2 nvidia.com/gpu",
                change="ask at most 2 nvidia.com/gpu, or add larger nodes",
                never=True,
            ),
        ],
    )
    assert (
        "\n".join(explain(one, others=3, now=NOW))
        == """\
train (and 3 more steps like it)  ○ waiting for 12m
  asks 64.0 GiB memory, 8 nvidia.com/gpu on each of 2 nodes
  proj-b-tpu  asks 16 nvidia.com/gpu; 4 of 64 nvidia.com/gpu is free
              → 12 more nvidia.com/gpu free would start it
  lab         asks 8 nvidia.com/gpu on one node; the largest has 2
              nvidia.com/gpu (waiting will not help)
              → ask at most 2 nvidia.com/gpu, or add larger nodes"""
    )


def test_problems_point_at_their_place(capsys: pytest.CaptureFixture[str]) -> None:
    text = "metadata: {name: x}\nsteps:\n  - name: 数字\n    comand: [x]\n"
    problems = [
        Problem(message="is not a name", line=3, column=11, hint="a-z, 0-9 and -"),
        Problem(message="a step has no field `comand`", line=4, column=5, hint="command"),
        Problem(message="something is missing"),
        Problem(message="beyond the end", line=99, column=1),
    ]
    print_problems("train.yaml", text, problems)
    assert (
        capsys.readouterr().err
        == """\
train.yaml:3:11: is not a name (a-z, 0-9 and -)
      - name: 数字
              ^
train.yaml:4:5: a step has no field `comand` (command)
        comand: [x]
        ^
train.yaml: something is missing
train.yaml:99:1: beyond the end
"""
    )


def test_an_error_says_what_where_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    problem = Problem(field="parameters.epochs", message="expected a whole number", hint="try 5")
    print_error(Invalid("what was sent\x1b[2J does not fit", problems=[problem], hint="Look."))
    assert (
        capsys.readouterr().err
        == """\
Error: what was sent does not fit
  parameters.epochs: expected a whole number; try 5
Hint: Look.
"""
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0s"),
        (9.94, "9.9s"),
        (59.4, "59s"),
        (59.6, "1m"),
        (200, "3m20s"),
        (3600, "1h"),
        (22_320, "6h12m"),
        (356_400, "4d3h"),
    ],
)
def test_a_span_has_at_most_two_units(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_times_and_sizes_in_few_characters() -> None:
    assert ago(NOW - timedelta(seconds=2), NOW) == "just now"
    assert ago(NOW + timedelta(seconds=9), NOW) == "just now", "clocks differ"
    assert ago(NOW - timedelta(hours=47), NOW) == "47h ago"
    assert [size(n) for n in (0, 1023, 1024, 150 * 1024, 2**50)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "150 KiB",
        "1.0 PiB",
    ]


def steers(text: str) -> bool:
    """Whether a terminal would act upon something in `text`."""
    return any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in text) or any(
        c in text for c in "\u200e\u200f\u202a\u202b\u202d\u202e\u2066\u2067\u2068"
    )


@given(st.text())
def test_clean_text_steers_no_terminal(text: str) -> None:
    assert not steers(clean(text))


@given(st.text(alphabet=st.sampled_from("\x1b[]0;31mAH\x07\x9b\\Px\r\n\x08 ")))
def test_output_steers_no_terminal_whatever_it_is_made_of(text: str) -> None:
    assert not steers(clean_output(text, colours=False))
    coloured = clean_output(text, colours=True)
    for part in coloured.split("\x1b")[1:]:
        code = part.partition("m")[0]
        assert code.startswith("[")
        assert set(code[1:]) <= set("0123456789;")


def test_colours_of_a_program_stay_where_colours_are_shown() -> None:
    assert clean_output("\x1b[31mred\x1b[2J", colours=True) == "\x1b[31mred\x1b[0m"


COLUMNS = [
    Column(title="ID"),
    Column(title="NAME", shrinks=True, least=20),
    Column(title="BY", rank=2, shrinks=True),
    Column(title="AGE", rank=1, right=True),
]


@given(
    st.lists(st.lists(st.text(max_size=40), min_size=4, max_size=4), max_size=4),
    st.integers(60, 200),
)
def test_no_line_is_wider_than_the_terminal(rows: list[list[str]], fit: int) -> None:
    for line in table(COLUMNS, [[Cell(r[0][:10]), *r[1:]] for r in rows], fit=fit):
        assert cell_len(line) <= fit
        assert "\n" not in line
