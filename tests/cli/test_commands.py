"""Commands against a real server: what they print, and the codes they end with."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.api.platform import CHAIN, HUGE, ONE
from tests.cli.conftest import Run
from tests.cli.server_thread import Server
from tests.usecases.world import OK, failed
from verderer.cli.screen.failures import Exit


def written(home: Path, text: str) -> Path:
    path = home / "pipeline.yaml"
    path.write_text(text)
    return path


def test_a_run_is_submitted_listed_shown_and_cloned(
    member: Run, home: Path, server: Server
) -> None:
    file = written(home, CHAIN)
    done = member("run", file, "--project", "ours", "--no-watch", "-p", "epochs=9")
    run = done.out.strip()
    assert (done.code, len(run)) == (0, 13)
    assert "chain: 2 steps" in done.err
    (listed,) = json.loads(member("runs", "-o", "json").out)
    assert (listed["id"], listed["state"]) == (run, "queued")
    for word in (run, run.upper(), "chain"):
        shown = yaml.safe_load(member("runs", "show", word, "-o", "yaml").out)
        assert shown["run"]["parameters"] == {"epochs": "9"}
        assert [step["name"] for step in shown["steps"]] == ["first", "second"]
    table = member("runs", "show", "chain").out
    assert re.search(r"^state +○ queued$", table, re.MULTILINE)
    assert "cli-" not in table, "a key that nobody chose is not shown"
    copy = member("clone", run, "-p", "epochs=1", "-o", "json")
    assert json.loads(copy.out)["id"] != run


def test_the_same_key_gives_the_same_run(member: Run, home: Path) -> None:
    words = ("run", written(home, ONE), "--project", "ours", "--no-watch", "--key", "nightly")
    first, again = member(*words), member(*words)
    assert first.out == again.out
    assert "was known by its key" in again.err


def test_runs_are_found_by_filters(member: Run, server: Server) -> None:
    one, chain = server.submit(ONE), server.submit(CHAIN)

    def ids(*words: str) -> list[str]:
        return [run["id"] for run in json.loads(member("runs", *words, "-o", "json").out)]

    assert ids() == [chain, one]
    assert ids("--oldest") == [one, chain]
    assert ids("--label", "team=vision") == [chain]
    assert ids("-q", "on") == [one]
    assert ids("-s", "queued", "-s", "running") == [chain, one]
    assert ids("-s", "failed") == []
    few = member("runs", "--limit", "1")
    assert few.out.count("\n") == 2
    assert "--limit 5" in few.err
    assert "No run matches" in member("runs", "-s", "failed").out


def test_an_empty_list_says_what_to_do(member: Run) -> None:
    assert "verderer run FILE" in member("runs").out
    assert "verderer tokens create" not in member("tokens").out  # it has one: the one in use


def test_cancelling_and_retrying(member: Run, server: Server) -> None:
    run = server.submit(CHAIN)
    early = member("retry", run)
    assert (early.code, early.out) == (Exit.FAILED, "")
    assert "cannot go from queued" in early.err
    assert "is cancelled" in member("cancel", run).err
    assert "is queued" in member("retry", run, "--all").err
    server.start()
    assert "is cancelling" in member("cancel", run).err


class TestWatching:
    def test_a_run_that_succeeds_ends_with_0(self, member: Run, server: Server, home: Path) -> None:
        async def carry_out() -> None:
            keys = await server.platform.start()
            await server.platform.end(keys[0], OK)

        server.later(1.0, carry_out)
        done = member("run", written(home, ONE), "--project", "ours")
        assert done.code == 0
        assert re.search(r"only ✓ succeeded", done.out)
        assert re.search(r"^✓ succeeded  one [0-9a-z]{13} in ", done.out, re.MULTILINE)

    def test_a_run_that_fails_ends_with_1_and_the_end_of_its_output(
        self, member: Run, server: Server, home: Path
    ) -> None:
        async def carry_out() -> None:
            key = (await server.platform.start())[0]
            lines = "".join(f"line {n}\n" for n in range(50))
            await server.platform.write_log(key, lines.encode() + b"\x1b]0;title\x07boom\x1b[2J\n")
            await server.platform.end(key, failed(3))

        server.later(1.0, carry_out)
        done = member("run", written(home, ONE), "--project", "ours")
        assert done.code == Exit.FAILED
        assert "✕ failed" in done.out
        assert "  line 49\n  boom\n" in done.out
        assert "line 20\n" not in done.out
        assert "\x1b" not in done.out + done.err
        assert "verderer logs" in done.err

    def test_why_a_step_waits_is_told_once(self, member: Run, server: Server) -> None:
        run = server.submit(HUGE)
        server.do(server.platform.world.place())

        async def give_up() -> None:
            path = f"/runs/{run}/cancel"
            await server.platform.ask(server.platform.cast.member, "POST", path)

        server.later(4.5, give_up)
        done = member("watch", run)
        assert done.code == Exit.FAILED
        assert done.out.count("big waits: local: asks 8 nvidia.com/gpu") == 1
        assert "⊘ cancelled" in done.out

    def test_the_server_may_be_away_for_a_while(self, member: Run, server: Server) -> None:
        run = server.submit(ONE)
        key = server.start()[0]

        async def end_meanwhile() -> None:
            await server.platform.end(key, OK)

        import threading

        away = threading.Timer(1.0, server.restart, args=(1.5,))
        away.start()
        server.later(3.5, end_meanwhile)
        done = member("watch", run)
        away.join()
        assert done.code == 0
        assert "the server is away" in done.out
        assert "the server is back" in done.out

    def test_with_a_format_the_result_is_a_document(self, member: Run, server: Server) -> None:
        run = server.submit(ONE)
        server.do(server.platform.end(server.start()[0], OK))
        done = member("watch", run, "-o", "json")
        assert json.loads(done.out)["state"] == "succeeded"
        assert "only ✓ succeeded" in done.err


class TestLogs:
    def test_one_step_is_plain_and_several_have_their_names_before(
        self, member: Run, server: Server
    ) -> None:
        one = server.submit(ONE)
        server.do(server.platform.write_log(server.start()[0], b"hello\n"))
        assert member("logs", one).out == "hello\n"
        chain = server.submit(CHAIN)
        key = server.start()[-1]
        server.do(server.platform.write_log(key, b"a\nb\nc\n"))
        assert member("logs", chain).out == "first  | a\nfirst  | b\nfirst  | c\n"
        assert member("logs", f"{chain}/first", "--tail", "1").out == "c\n"
        assert member("logs", f"{chain}/0", "--search", "B").out == "b\n"
        stamped = member("logs", f"{chain}/first", "-t", "-n", "1").out
        assert stamped == "2025-11-30T10:53:20.123Z c\n"

    def test_following_ends_with_the_step(self, member: Run, server: Server) -> None:
        run = server.submit(ONE)
        key = server.start()[0]
        platform = server.platform

        async def go_on() -> None:
            await platform.write_log(key, b"two\n", sequence=1, first_byte=4)
            await platform.end(key, OK)

        server.do(platform.write_log(key, b"one\n", complete=False))
        server.later(1.0, go_on)
        assert member("logs", "-f", run).out == "one\ntwo\n"

    def test_following_goes_on_after_an_outage_without_losing_or_doubling_a_line(
        self, member: Run, server: Server
    ) -> None:
        run = server.submit(ONE)
        key = server.start()[0]
        platform = server.platform
        server.do(platform.write_log(key, b"one\n", complete=False))

        async def go_on() -> None:
            await platform.write_log(key, b"two\n", sequence=1, first_byte=4)
            await platform.end(key, OK)

        import threading

        away = threading.Timer(1.0, server.restart, args=(0.5,))
        away.start()
        server.later(3.0, go_on)
        done = member("logs", "-f", run)
        away.join()
        assert done.out == "one\ntwo\n"
        assert "The server is away" in done.err

    def test_a_terminal_is_not_steered_by_what_a_program_wrote(
        self, member: Run, server: Server
    ) -> None:
        run = server.submit(ONE)
        raw = b"\x1b[2J\x1b]0;evil\x07\x1b[31mred\x1b[0m \x9b1A tab\there \x08\x00end\n"
        server.do(server.platform.write_log(server.start()[0], raw))
        out = member("logs", run).out
        assert out == "red \ufffd1A tab\there end\n"

    def test_too_many_outputs_are_not_followed_at_once(self, member: Run, server: Server) -> None:
        values = ", ".join(str(n) for n in range(60))
        text = ONE + f"    matrix: {{n: [{values}]}}\n"
        done = member("logs", "-f", server.submit(text))
        assert done.code == Exit.FAILED
        assert "/STEP" in done.err


class TestArtifacts:
    def made(self, server: Server) -> str:
        run = server.submit(ONE)
        key = server.start()[0]
        base = f"artifacts/1/{run}/0/1"
        platform = server.platform
        server.do(platform.objects.put(f"{base}/model", b"weights"))
        server.do(platform.objects.put(f"{base}/report/deep/b%23 1.txt", b"text"))
        outputs = [("model", f"{base}/model", 7, 1, ""), ("report", f"{base}/report/", 4, 1, "")]
        server.do(platform.end(key, OK, outputs=outputs))
        return run

    def test_they_are_listed_and_fetched(self, member: Run, server: Server, home: Path) -> None:
        run = self.made(server)
        listed = json.loads(member("artifacts", run, "-o", "json").out)
        assert [(one["name"], one["folder"]) for one in listed] == [
            ("model", False),
            ("report", True),
        ]
        to = home / "out"
        assert member("artifacts", run, "download", "--to", to).code == 0
        assert (to / "only/model").read_bytes() == b"weights"
        assert (to / "only/report/deep/b# 1.txt").read_bytes() == b"text"
        again = member("artifacts", run, "download", "--to", to)
        assert (again.code, "--force" in again.err) == (Exit.FAILED, True)
        assert member("artifacts", run, "download", "--to", to, "--force").code == 0
        assert not list(to.rglob("*.part"))

    def test_no_name_leads_out_of_the_folder(self, member: Run, server: Server, home: Path) -> None:
        run = server.submit(ONE)
        key = server.start()[0]
        base = f"artifacts/1/{run}/0/1/odd"
        server.do(server.platform.objects.put(f"{base}/%2E%2E/x", b"evil"))
        server.do(server.platform.end(key, OK, outputs=[("odd", f"{base}/", 4, 1, "")]))
        done = member("artifacts", run, "download", "--to", home / "out")
        assert done.code == Exit.FAILED
        assert "odd name" in done.err
        assert not list(home.rglob("x"))


def test_why_says_what_to_change(member: Run, server: Server) -> None:
    run = server.submit(HUGE)
    server.do(server.platform.world.place())
    done = member("why", f"{run}/big")
    assert "asks 8 nvidia.com/gpu; this cluster has none (waiting will not help)" in done.out
    assert "→ remove the request for nvidia.com/gpu" in done.out
    codes = [r["code"] for r in json.loads(member("why", run, "-o", "json").out)[0]["reasons"]]
    assert codes == ["no_such_resource"]


def test_clusters_are_listed_shown_and_taken_out_of_use(
    member: Run, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert re.search(r"^local +● online +local +1/1 ", member("clusters").out, re.MULTILINE)
    assert "8.0 GiB" in member("clusters", "show", "local").out
    assert member("clusters", "disable", "local").code == Exit.FAILED
    monkeypatch.setenv("VERDERER_TOKEN", server.platform.cast.root.token)
    assert "is disabled" in member("clusters", "disable", "local").err
    assert "⊘ disabled" in member("clusters").out
    assert "is online" in member("clusters", "enable", "local").err


def test_projects_and_tokens(member: Run, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [p["name"] for p in json.loads(member("projects", "-o", "json").out)] == ["ours"]
    made = member("tokens", "create", "ci", "--days", "3", "--read-only")
    assert made.out.startswith("vrd_u_")
    tokens = json.loads(member("tokens", "-o", "json").out)
    number = next(t["id"] for t in tokens if t["name"] == "ci")
    assert member("tokens", "revoke", number).code == 0
    assert member("tokens", "revoke", number).code == Exit.NOT_FOUND
    monkeypatch.setenv("VERDERER_TOKEN", server.platform.cast.root.token)
    assert member("projects", "create", "new", "--title", "New").code == 0
    assert member("projects", "create", "new").code == Exit.FAILED


class TestEnds:
    @pytest.mark.parametrize(
        ("words", "code"),
        [
            pytest.param(["runs", "show", "0000000000000"], Exit.NOT_FOUND, id="no such run"),
            pytest.param(["why", "nothing"], Exit.NOT_FOUND, id="no run of such a name"),
            pytest.param(["clusters", "show", "x"], Exit.NOT_FOUND, id="no such cluster"),
            pytest.param(["runs", "--project", "theirs"], Exit.NOT_FOUND, id="others' project"),
            pytest.param(["run", "/nowhere.yaml"], Exit.FAILED, id="no such file"),
            pytest.param(["runs", "--limit", "0"], Exit.USAGE, id="a limit out of range"),
            pytest.param(["fly"], Exit.USAGE, id="no such command"),
            pytest.param(["--context", "x", "runs"], Exit.NOT_FOUND, id="no such context"),
        ],
    )
    def test_each_failure_has_its_code(self, member: Run, words: list[str], code: Exit) -> None:
        done = member(*words)
        assert done.code == code
        assert "Error" in done.err
        assert "Traceback" not in done.err

    def test_nobody_is_told_to_log_in(self, verderer: Run) -> None:
        done = verderer("runs")
        assert done.code == Exit.NOT_AUTHENTICATED
        assert "Hint: verderer login" in done.err

    def test_a_wrong_token_is_not_accepted(
        self, member: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("VERDERER_TOKEN", "vrd_u_" + "a" * 43)
        assert member("runs").code == Exit.NOT_AUTHENTICATED

    def test_a_server_that_is_not_there_is_unavailable(
        self, verderer: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("VERDERER_URL", "http://127.0.0.1:9")
        monkeypatch.setenv("VERDERER_TOKEN", "vrd_u_x")
        assert verderer("runs").code == Exit.UNAVAILABLE

    def test_a_malformed_pipeline_is_shown_with_its_place(self, member: Run, home: Path) -> None:
        file = written(home, ONE.replace("command", "comand"))
        done = member("run", file, "--project", "ours")
        assert done.code == Exit.FAILED
        assert f"{file}:4:5: a step has no field `comand` (did you mean `command`?)" in done.err
        assert "    comand: [echo, hello]\n" in done.err

    def test_a_wrong_parameter_is_named(self, member: Run, home: Path) -> None:
        words = ("run", written(home, CHAIN), "--project", "ours", "-p", "epochs=many")
        done = member(*words)
        assert done.code == Exit.FAILED
        assert "parameters.epochs: expected a whole number" in done.err
