"""From `clusters add` to work, with the programs that people run: join, renew, revoke, remove."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.chaos.platform import Platform, platform, wait_for
from tests.e2e import tls
from tests.e2e.commands import Cli, clean_environment
from tests.rig.folders import reachable_folder

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300), pytest.mark.xdist_group("chaos")]

ONE = """
metadata: {name: elsewhere, project: demo}
steps:
  - {name: only, script: 'echo from the other cluster'}
"""


@dataclass(frozen=True)
class House:
    platform: Platform
    cli: Cli
    folder: Path

    @property
    def other(self) -> Path:
        """The data folder of the agent that joins."""
        return self.folder / "other"

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of the machine beside the cluster, where nobody is logged in."""
        return subprocess.run(
            [sys.executable, "-P", "-m", "verderer.cli.main", *words],
            env=clean_environment(self.folder / "elsewhere"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def invite(self, cluster: str, kind: str = "local") -> list[str]:
        """The words of the command that `clusters add` prints, without the program's name."""
        said = self.cli("clusters", "add", cluster, "--kind", kind).split()
        assert said[:3] == ["verderer", "agent", "join"]
        return said[1:]

    @contextmanager
    def agent(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run the agent that has joined."""
        with (self.folder / "agent.log").open("wb") as out:
            words = ["agent", "--data-dir", str(self.other)]
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "verderer.cli.main", *words],
                env=clean_environment(self.folder / "elsewhere"),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)

    def state(self, cluster: str) -> str:
        return str(self.cli.read("clusters", "show", cluster)["state"])


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    with (
        reachable_folder() as folder,
        platform(folder / "data", clean_environment(folder / "home")) as there,
    ):
        cli = Cli(folder / "home")
        cli.log_in(there.url, there.one_time_password())
        yield House(there, cli, folder)


def test_an_agent_joins_is_looked_at_works_and_is_locked_out(house: House) -> None:
    words = house.invite("other")
    assert house.state("other") == "joining"
    joined = house.command(*words, "--data-dir", str(house.other))
    assert joined.returncode == 0, joined.stderr
    assert "Joined as cluster other" in joined.stderr
    identity = house.other / "agent" / "identity.json"
    assert stat.S_IMODE(identity.stat().st_mode) == 0o600
    spent = house.command(*words, "--data-dir", str(house.folder / "third"))
    assert spent.returncode != 0
    assert "the join token was used before" in spent.stderr
    with house.agent() as agent:
        wait_for(lambda: house.state("other") == "online", 60, "the cluster is online")
        checks = house.cli.read("clusters", "show", "other")["checks"]
        levels = {one["name"]: one["level"] for one in checks}
        assert levels == {
            "clock": "pass",
            "object store": "pass",
        }
        house.cli("clusters", "disable", "local")
        file = house.folder / "one.yaml"
        file.write_text(ONE)
        assert "succeeded" in house.cli("run", str(file), "--watch")
        (run,) = house.cli.read("runs", "--name", "elsewhere")
        assert house.cli("logs", f"{run['id']}/only") == "from the other cluster\n"
        busy = house.cli.attempt("clusters", "remove", "other")
        assert "nothing was removed" in busy.stderr or busy.returncode != 0
        house.cli("clusters", "revoke", "other")
        log = house.folder / "agent.log"
        wait_for(lambda: "revoked" in log.read_text(), 60, "the agent hears that it is out")
        assert agent.poll() is None, "what runs there must go on to be watched"
    house.cli("clusters", "remove", "other", "--yes")
    assert "other" not in [one["id"] for one in house.cli.read("clusters")]
    house.cli("clusters", "enable", "local")


def test_a_credential_that_ran_out_is_replaced_by_a_signature(house: House) -> None:
    house.command(*house.invite("sleeper"), "--data-dir", str(house.other), "--again")
    path = house.other / "agent" / "identity.json"
    kept = json.loads(path.read_text())
    path.write_text(json.dumps(kept | {"renew_unix_s": 0, "key_made_unix_s": 0}))
    with house.agent():
        wait_for(lambda: house.state("sleeper") == "online", 60, "the cluster is online")
    fresh = json.loads(path.read_text())
    assert fresh["credential"] != kept["credential"]
    assert fresh["private_key"] != kept["private_key"], "an old key was changed too"
    assert fresh.get("next_key") is None


def test_joining_anew_in_vain_leaves_the_agent_what_it_has(house: House) -> None:
    folder = house.folder / "firm"
    house.command(*house.invite("firm"), "--data-dir", str(folder))
    kept = (folder / "agent" / "identity.json").read_bytes()
    words = house.invite("firm")
    words[words.index("--token") + 1] = "vrd_j_" + "x" * 43
    done = house.command(*words, "--data-dir", str(folder), "--again")
    assert "the join token is unknown" in done.stderr
    assert (folder / "agent" / "identity.json").read_bytes() == kept


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("--server", "http://127.0.0.1:9"), "cannot be reached"),
        (("--token", "vrd_j_" + "x" * 43), "the join token is unknown"),
        (("--kind", "slurm"), "is for a cluster of kind local"),
    ],
)
def test_what_keeps_an_agent_out_is_said(house: House, change: tuple[str, str], said: str) -> None:
    words = house.invite("unlucky")
    if change[0] in words:
        words[words.index(change[0]) + 1] = change[1]
    else:
        words += change
    done = house.command(*words, "--data-dir", str(house.folder / "unlucky"))
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_agent_that_has_not_joined_says_how(house: House) -> None:
    done = house.command("agent", "--data-dir", str(house.folder / "nobody"))
    assert done.returncode == 78
    assert "has not joined" in done.stderr or "not enabled" in done.stderr


def test_a_private_authority_is_trusted_when_it_is_named_and_for_its_name_alone(
    house: House,
) -> None:
    with tls.proxy(house.folder, house.platform.port) as way:

        def join(*more: str, name: str = "localhost") -> subprocess.CompletedProcess[str]:
            words = house.invite("private")
            words[words.index("--server") + 1] = f"https://{name}:{way.port}"
            return house.command(*words, "--data-dir", str(house.folder / "private"), *more)

        unknown = join()
        assert unknown.returncode != 0
        assert "certificate" in unknown.stderr
        assert "--ca-file" in unknown.stderr or "authority" in unknown.stderr
        wrong = join("--ca-file", str(way.authority), name="127.0.0.1")
        assert wrong.returncode != 0
        assert "another name" in wrong.stderr
        missing = join("--ca-file", str(house.folder / "nowhere.pem"))
        assert missing.returncode != 0
        assert "nowhere.pem" in missing.stderr
        joined = join("--ca-file", str(way.authority))
        assert joined.returncode == 0, joined.stderr
        said = (house.folder / "private" / "verderer.toml").read_text()
        assert f'ca_file = "{way.authority}"' in said
