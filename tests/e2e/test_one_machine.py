"""`verderer up` with everything embedded, used through its command line alone."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.platform import Platform, platform, wait_for
from tests.e2e.commands import Cli, clean_environment
from tests.rig.folders import reachable_folder

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300), pytest.mark.xdist_group("chaos")]

# The step tells tracking what it learnt with nothing but the standard library: what MLflow's own
# client does is shown by the demo.
CHAIN = """
metadata: {name: chain, project: demo}
parameters: {who: world}
steps:
  - name: write
    outputs: {greeting: out}
    script: |
      mkdir -p out/deep
      echo "hello $VERDERER_PARAM_WHO" > out/deep/greeting.txt
      echo written
  - name: read
    inputs: {greeting: {from: write.greeting, path: in}}
    command: [cat, in/deep/greeting.txt]
  - name: track
    script: |
      #!/usr/bin/env python3
      import json, os, urllib.request
      def call(path, body):
          request = urllib.request.Request(
              os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/" + path,
              json.dumps(body).encode(),
              {"Authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"],
               "Content-Type": "application/json"})
          return json.load(urllib.request.urlopen(request))
      run = call("runs/create", {"experiment_id": "0", "run_name": "learnt", "start_time": 1})
      run_id = run["run"]["info"]["run_id"]
      call("runs/log-metric",
           {"run_id": run_id, "key": "accuracy", "value": 0.75, "timestamp": 1, "step": 1})
"""
TICKING = """
metadata: {name: ticking, project: demo}
steps:
  - name: tick
    script: |
      for i in $(seq 1 %d); do echo "tick $i"; sleep 0.2; done
      echo over
"""
WAITING = """
metadata: {name: waiting, project: demo}
steps:
  - name: wait
    env: {MARK: %s}
    script: |
      echo before
      while [ ! -e "$MARK" ]; do sleep 0.1; done
      echo after
"""
FLAKY = """
metadata: {name: flaky, project: demo}
steps:
  - {name: first, script: 'echo once >> "$DIARY"', env: {DIARY: %(diary)s}}
  - {name: second, needs: [first], script: 'test -e "$MARK"', env: {MARK: %(mark)s}}
  - {name: third, needs: [second], command: ['true']}
"""


@dataclass(frozen=True)
class House:
    """The platform, its command line, and what was seen when the first person logged in."""

    platform: Platform
    cli: Cli
    seen: str
    folder: Path


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    with reachable_folder() as folder:
        environment = clean_environment(folder / "home")
        with platform(folder / "data", environment) as there:
            cli = Cli(folder / "home")
            seen = cli.log_in(there.url, there.one_time_password())
            yield House(there, cli, seen, folder)


def test_the_one_time_password_is_replaced_at_the_first_login(house: House) -> None:
    assert "works once" in house.seen
    me = house.cli.read("whoami")
    assert me["email"] == "admin@localhost"
    assert me["platform_admin"] is True
    again = house.cli.attempt("login", house.platform.url, "--email", "admin@localhost")
    assert again.returncode == 3, "without a terminal nobody is asked for a password"


def test_artifacts_pass_between_steps_and_tracking_is_tied_to_the_step(house: House) -> None:
    file = house.folder / "chain.yaml"
    file.write_text(CHAIN)
    said = house.cli("run", str(file), "-p", "who=forest", "--watch")
    assert "succeeded" in said
    run = house.cli.read("runs", "--name", "chain")[0]["id"]
    assert house.cli("logs", f"{run}/read") == "hello forest\n"
    assert tracked(house, run) == [("learnt", "track", 0.75)]


def tracked(house: House, run: str) -> list[tuple[str, str, float]]:
    """Name, step and accuracy of each tracked run of `run`, from outside the step."""
    config = (house.folder / "home/.config/verderer/config.toml").read_text()
    token = config.partition('token = "')[2].partition('"')[0]
    tracking = f"{house.platform.url}/mlflow/demo/api/2.0/mlflow"
    known = post(f"{tracking}/experiments/search", {"max_results": 100}, token)["experiments"]
    body = {
        "experiment_ids": [one["experiment_id"] for one in known],
        "filter": f"tags.`verderer.run` = '{run}'",
    }
    found = post(f"{tracking}/runs/search", body, token)
    return [
        (
            one["info"]["run_name"],
            next(t["value"] for t in one["data"]["tags"] if t["key"] == "verderer.step"),
            one["data"]["metrics"][0]["value"],
        )
        for one in found["runs"]
    ]


def post(url: str, body: object, token: str) -> Any:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def test_output_is_followed_while_it_is_written(house: House) -> None:
    mark = house.folder / "read-the-first-line"
    run = house.cli.submit(house.folder, WAITING % mark)
    with house.cli.beginning("logs", "-f", f"{run}/wait") as lines:
        lines.until("before")
        mark.touch()  # it says no more before somebody has read so far
        lines.until("after")
        assert lines.to_the_end() == 0
    assert lines.seen == ["before", "after"]


def test_a_cancelled_run_ends_with_its_programs(house: House) -> None:
    run = house.cli.submit(house.folder, TICKING % 3000)
    wait_for(lambda: bool(house.platform.attempts()), 60, "the step runs")
    house.cli("cancel", run)
    said = house.cli("watch", run, code=1)
    assert "cancelled" in said
    assert house.cli.state(run) == "cancelled"
    wait_for(lambda: not house.platform.attempts(), 20, "its programs are gone")


def test_a_retry_keeps_what_succeeded_and_a_clone_is_a_run_of_its_own(house: House) -> None:
    diary, mark = house.folder / "diary", house.folder / "mark"
    run = house.cli.submit(house.folder, FLAKY % {"diary": diary, "mark": mark})
    said = house.cli("watch", run, code=1)
    assert "exit code 1" in said
    mark.touch()
    house.cli("retry", run)
    house.cli("watch", run)
    shown = house.cli.read("runs", "show", run)
    assert [(s["name"], s["state"], s["attempts"]) for s in shown["steps"]] == [
        ("first", "succeeded", 1),
        ("second", "succeeded", 2),
        ("third", "succeeded", 1),
    ]
    copy = house.cli("clone", run).strip()
    assert copy != run
    house.cli("watch", copy)
    assert house.cli.read("runs", "show", copy)["run"]["cloned_from"] == run
    assert diary.read_text() == "once\n" * 2, "the first step ran once in each of the two runs"


def test_a_step_goes_on_while_everything_is_stopped_and_started_again(house: House) -> None:
    before = {one["id"]: one["state"] for one in house.cli.read("runs")}
    run = house.cli.submit(house.folder, TICKING % 50)
    wait_for(lambda: bool(house.platform.attempts()), 60, "the step runs")
    (program,) = [p.pid for p in house.platform.attempts()]
    said = house.platform.stop()
    assert "1 step goes on" in said
    assert [p.pid for p in house.platform.attempts()] == [program]
    time.sleep(1.0)  # it writes while nobody listens
    house.platform.start()
    house.platform.wait_ready()
    house.cli("watch", run)
    (step,) = house.cli.read("runs", "show", run)["steps"]
    assert (step["state"], step["attempts"]) == ("succeeded", 1)
    lines = house.cli("logs", f"{run}/tick").splitlines()
    assert lines == [f"tick {i}" for i in range(1, 51)] + ["over"], "no line is missing or doubled"
    after = {one["id"]: one["state"] for one in house.cli.read("runs")}
    assert after == before | {run: "succeeded"}


def test_an_administrator_who_lost_the_password_gets_in_again(house: House) -> None:
    said = house.cli("recover", "--data-dir", str(house.platform.data))
    password = said.partition("one-time password: ")[2].split()[0]
    cli = Cli(house.folder / "another-home")
    assert "works once" in cli.log_in(
        house.platform.url, password, password="four tame otters swim"
    )
    assert cli.read("whoami")["platform_admin"] is True
