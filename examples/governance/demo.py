"""`make demo-governance`: two teams, each with a cluster of its own, and a common one by approval.

Everything is real: a platform, three more agents on this machine that each join with a token of
their own and offer a part of it, two project groups with members, resource groups with quotas and
label rules, and runs that show what is kept, refused and waited for.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "digits"))
os.environ.setdefault("VERDERER_DEMO_DIR", str(HERE.parents[1] / ".verderer" / "governance"))

import demo as base  # noqa: E402 the other demo starts and stops a platform the same way

CLUSTERS = ("proj-b-tpu", "proj-c-cpu", "proj-common-gpu")
TEAMS = {
    "proj-b": ("Team B", "bea@example.org", "rg-b", "proj-b-tpu", "2"),
    "proj-c": ("Team C", "cem@example.org", "rg-c", "proj-c-cpu", "1"),
}


class Platform:
    """What this script asks of the platform, with the tokens of those who ask."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token

    def verderer(self, *words: str, token: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command as a person would, and show it."""
        base.say(f"\n$ verderer {shlex.join(words)}")
        environment = os.environ | {
            "VERDERER_URL": self.url,
            "VERDERER_TOKEN": token or self.token,
            "NO_COLOR": "1",
        }
        done = subprocess.run(
            [str(base.BIN / "verderer"), *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        for line in done.stdout.splitlines():
            base.say(f"  {line}")
        return done

    def call(self, path: str, body: dict[str, Any]) -> Any:
        return base.call(self.url, f"/api/v1{path}", body, token=self.token)


def main() -> int:
    base.DATA.mkdir(parents=True, exist_ok=True)
    port = base.free_port(8642)
    url, log = f"http://127.0.0.1:{port}", base.DATA / "up.log"
    base.say(f"Starting Verderer on {url} (its log: {log})")
    processes = [base.start(port, log)]
    try:
        base.wait_until_ready(processes[0], url, log)
        password = base.own_password(url, log)
        login = {"email": base.EMAIL, "password": password, "machine": "governance demo"}
        there = Platform(url, base.call(url, "/api/v1/login", login)["token"])
        processes += [join(there, name) for name in CLUSTERS]
        people = set_up(there)
        show(there)
        base.say(f"\nPage    {url}/governance")
        base.say(f"Login   {base.EMAIL}  {password}")
        for email, secret in people.items():
            base.say(f"        {email}  {secret}  (one-time: choose another at the first login)")
        if sys.stdin.isatty() and not os.environ.get("CI"):
            base.say("\nCtrl-C stops everything; `make demo-governance` starts it again.")
            processes[0].wait()
    except KeyboardInterrupt:
        base.say("\nStopping")
    finally:
        for process in reversed(processes):
            process.send_signal(signal.SIGINT)
        for process in processes:
            process.wait(90)
    return 0


def join(there: Platform, name: str) -> subprocess.Popen[bytes]:
    """Let one more agent in, with a token of its own, and start it."""
    home = base.DATA / name
    environment = os.environ | {
        "VERDERER_DATA_DIR": str(home),
        "VERDERER_LOCAL_CLUSTER_ENABLED": "true",
        "VERDERER_LOCAL_CLUSTER_CAPACITY": "cpu=2,memory=1Gi",
    }
    program = str(base.BIN / "verderer")
    if not home.exists():
        made = there.call("/clusters", {"id": name, "kind": "local", "minutes": 60})
        once = environment | {"VERDERER_AGENT_JOIN_TOKEN": made["token"]}
        command = [program, "agent", "join", "--server", there.url, "--kind", "local"]
        subprocess.run(command, env=once, check=True, stdout=subprocess.DEVNULL)
    with (base.DATA / f"{name}.log").open("wb") as out:
        return subprocess.Popen(
            [program, "agent"], env=environment, stdout=out, stderr=out, start_new_session=True
        )


def set_up(there: Platform) -> dict[str, str]:
    """Teams, people, resource groups and grants, the first time."""
    people: dict[str, str] = {}
    known = base.call(there.url, "/api/v1/project-groups", token=there.token)["items"]
    if any(one["name"] in TEAMS for one in known):
        return people
    for team, (title, email, group, cluster, cpu) in TEAMS.items():
        made = there.call("/users", {"email": email, "name": email.split("@")[0].title()})
        people[email] = made["password"]
        there.verderer("project-groups", "create", team, "--title", title)
        there.verderer("projects", "create", team, "--group", team)
        there.verderer("project-groups", "set-member", team, email)
        there.verderer(
            "resource-groups", "create", group, "--cluster", cluster,
            "--label", f"team={team}", "--quota", f"cpu={cpu}",
        )  # fmt: skip
        there.verderer("resource-groups", "grant", group, team, "--default")
    there.verderer(
        "resource-groups", "create", "common", "--cluster", "proj-common-gpu",
        "--title", "Shared, by approval",
    )  # fmt: skip
    return people


def show(there: Platform) -> None:
    """What holds, click by click."""
    b, c = str(HERE / "b.yaml"), str(HERE / "c.yaml")
    base.say("\nB fills its own cluster; what does not fit waits, though others are idle:")
    done = there.verderer("run", b, "--project", "proj-b", "--no-watch")
    there.verderer("run", c, "--project", "proj-c", "--no-watch")
    time.sleep(3)
    there.verderer("why", done.stdout.split()[0])
    base.say("\nNo label and no name leads out of a team's own group:")
    there.verderer("run", c, "--project", "proj-b", "--no-watch")
    there.verderer("run", b, "--project", "proj-b", "--resource-group", "common", "--no-watch")
    base.say("\nUntil somebody grants it:")
    there.verderer(
        "approvals", "ask", "common", "--project", "proj-b", "--reason", "a deadline on Friday"
    )
    there.verderer("approvals")


if __name__ == "__main__":
    sys.exit(main())
