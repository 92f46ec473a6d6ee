"""Commands that need no server or look after one: validate, completion, doctor, help, pages."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from tests.api.platform import CHAIN, ONE
from tests.cli.conftest import Run
from tests.cli.server_thread import Server
from tests.objects import servers
from verderer.cli import cli_reference, reasons_reference
from verderer.cli.screen.failures import Exit
from verderer.core.model.cluster import CheckLevel, CheckReport
from verderer.usecases.agents.agent_session import receive_checks

VERDERER = [sys.executable, "-P", "-m", "verderer.cli.main"]


def test_a_pipeline_is_checked_without_a_server(verderer: Run, home: Path) -> None:
    good = home / "good.yaml"
    good.write_text(CHAIN)
    done = verderer("pipelines", "validate", good)
    assert done.code == 0
    assert "is valid: chain, 2 steps, 1 dependency" in done.err
    bad = home / "bad.yaml"
    bad.write_text(ONE.replace("command", "comand"))
    wrong = verderer("pipelines", "validate", bad)
    assert wrong.code == Exit.FAILED
    assert f"{bad}:4:5: a step has no field `comand` (did you mean `command`?)" in wrong.err
    found = json.loads(verderer("pipelines", "validate", bad, "-o", "json").out)
    assert (found["valid"], found["problems"][1]["line"]) == (False, 4)
    assert verderer("pipelines", "validate", good, "-p", "epochs=x").code == Exit.FAILED


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"", b"a: &a [*a]", b"\x00" * 100])
def test_any_bytes_are_checked_cleanly(verderer: Run, home: Path, data: bytes) -> None:
    file = home / "odd.yaml"
    file.write_bytes(data)
    done = verderer("pipelines", "validate", file)
    assert done.code == Exit.FAILED
    assert "Traceback" not in done.err


def test_the_schema_is_printed(verderer: Run) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(verderer("pipelines", "schema").out))


def test_help_comes_quickly_and_in_sections() -> None:
    """In seconds of processor time, which other processes on the machine do not change much."""
    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([*VERDERER, "--help"], capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert "Runs:\n" in done.stdout
    assert "Run the platform:\n" in done.stdout
    assert min(spent) < 0.35  # 0.18 on a quiet machine
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_starting_loads_neither_a_web_framework_nor_a_database() -> None:
    heavy = "{'asyncio', 'httpx2', 'litestar', 'asyncpg', 'msgspec', 'rich', 'yaml', 'structlog'}"
    code = f"import sys, verderer.cli.main; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(verderer: Run, shell: str) -> None:
    done = verderer("completion", shell)
    assert f"complete_{shell}" in done.out


def test_bash_completes_commands_and_values() -> None:
    def completed(*words: str) -> list[str]:
        environment = os.environ | {
            "_VERDERER_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(words),
            "COMP_CWORD": str(len(words) - 1),
        }
        code = "import sys; sys.argv[0] = 'verderer'; from verderer.cli.main import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        return done.stdout.split()

    assert completed("verderer", "ru") == ["run", "runs"]
    assert completed("verderer", "runs", "-s", "can") == ["cancelling", "cancelled"]


class TestDoctor:
    def findings(self, run: Run, *words: object) -> tuple[int, dict[str, dict[str, str]]]:
        done = run("doctor", *words, "-o", "json")
        return done.code, {one["what"]: one for one in json.loads(done.out)}

    def failed(self, found: dict[str, dict[str, str]]) -> set[str]:
        return {what for what, one in found.items() if one["verdict"] == "fail"}

    def test_a_healthy_server_is_in_order(self, member: Run) -> None:
        code, found = self.findings(member, "--no-server")
        assert code == 0
        assert set(found) == {"server", "clock", "readiness", "versions", "token", "cluster local"}
        assert {one["verdict"] for one in found.values()} == {"ok"}
        shown = member("doctor", "--no-server")
        assert "✓ ok    token" in shown.out
        assert "Everything is in order." in shown.err

    def test_each_trouble_has_its_remedy(
        self, member: Run, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def silence() -> None:
            async with server.platform.world.ctx.db.transaction() as tx:
                await tx.execute("UPDATE heartbeats SET seen_at = now() - interval '1 hour'")

        server.do(silence())
        code, found = self.findings(member, "--no-server")
        assert (code, found["cluster local"]["verdict"]) == (0, "warn")
        assert found["cluster local"]["remedy"]
        monkeypatch.setenv("VERDERER_TOKEN", "vrd_u_wrong")
        code, found = self.findings(member, "--no-server")
        assert (code, found["token"]["verdict"]) == (1, "fail")
        assert "verderer login" in found["token"]["remedy"]

    def test_one_cluster_is_looked_at_check_by_check(self, member: Run, server: Server) -> None:
        world = server.platform.world

        def tell(level: CheckLevel) -> None:
            checks = [
                CheckReport(name="disk", level=level, required=True, message="m", remedy="do it"),
                CheckReport(name="wire", level=level, required=False, message="m"),
            ]
            agent, epoch = world.agents["local"], world.epochs["local"]
            server.do(receive_checks(world.ctx, agent, epoch=epoch, found=checks))

        for level, disk, wire in (
            (CheckLevel.PASS, "ok", "ok"),
            (CheckLevel.WARN, "warn", "warn"),
            (CheckLevel.FAIL, "fail", "warn"),
            (CheckLevel.UNKNOWN, "fail", "warn"),
        ):
            tell(level)
            code, found = self.findings(member, "--no-server", "--cluster", "local")
            assert (found["disk"]["verdict"], found["wire"]["verdict"]) == (disk, wire)
            assert code == (1 if disk == "fail" else 0)
        assert found["disk"]["detail"] == "could not be measured: m"
        assert found["disk"]["remedy"] == "do it"
        _, found = self.findings(member, "--no-server")
        assert "not fit for work" in found["cluster local"]["detail"]
        assert "doctor --cluster local" in found["cluster local"]["remedy"]
        tell(CheckLevel.PASS)
        code, found = self.findings(member, "--no-server", "--cluster", "nowhere")
        assert (code, found["cluster nowhere"]["verdict"]) == (1, "fail")

    def test_a_server_that_is_away_is_the_one_finding(
        self, verderer: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("VERDERER_URL", "http://127.0.0.1:9")
        code, found = self.findings(verderer, "--no-server")
        assert (code, list(found), found["server"]["verdict"]) == (1, ["server"], "fail")

    def test_the_server_s_machine_is_looked_at_too(
        self, member: Run, server: Server, dsn: str, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("VERDERER_DATABASE_URL", dsn)
        monkeypatch.setenv("VERDERER_OBJECTS_URL", str(home / "objects"))
        words = ("--data-dir", home / "data")
        code, found = self.findings(member, *words)
        assert (code, found["scheduler"]["verdict"]) == (1, "fail")
        server.do(server.platform.world.lead())
        code, found = self.findings(member, *words)
        assert self.failed(found) == {"durability"}, "the tests' own server is quick and forgetful"
        for what in ("PostgreSQL", "connections", "schema", "scheduler", "object store"):
            assert found[what]["verdict"] == "ok", found[what]
        assert found["pg_stat_statements"]["verdict"] == "warn"
        assert "slow statements" not in found, "nobody counted, so nobody may say that none is"

    def test_slow_statements_are_named_once_somebody_counts(
        self, member: Run, server: Server, dsn: str, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def dawdle() -> None:
            async with server.platform.world.ctx.db.reading() as tx:
                for _ in range(20):
                    await tx.fetchval("SELECT pg_sleep(0.11), 'dawdling' AS why")

        monkeypatch.setenv("VERDERER_DATABASE_URL", dsn)
        monkeypatch.setenv("VERDERER_OBJECTS_URL", str(home / "objects"))
        server.do(server.platform.world.lead())
        _, found = self.findings(member, "--data-dir", home / "data", "--fix")
        assert found["pg_stat_statements"]["verdict"] == "ok", found["pg_stat_statements"]
        assert found["slow statements"]["verdict"] == "ok"
        server.do(dawdle())
        _, found = self.findings(member, "--data-dir", home / "data")
        assert found["slow statements"]["verdict"] == "warn"
        assert "pg_sleep" in found["slow statements"]["detail"]

    def test_a_database_that_is_away_is_a_finding(
        self, member: Run, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("VERDERER_DATABASE_URL", "postgresql://x:y@127.0.0.1:9/x")
        monkeypatch.setenv("VERDERER_OBJECTS_URL", str(home / "objects"))
        code, found = self.findings(member)
        assert (code, found["database"]["verdict"]) == (1, "fail")
        assert found["object store"]["verdict"] == "ok"

    def test_the_bucket_is_made_and_mended_when_asked(
        self, member: Run, dsn: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("VERDERER_DATABASE_URL", dsn)
        with servers.moto() as s3:
            monkeypatch.setenv("VERDERER_OBJECTS_URL", "s3://bucket/prefix")
            monkeypatch.setenv("VERDERER_OBJECTS_ENDPOINT", s3.endpoint)
            monkeypatch.setenv("VERDERER_OBJECTS_ACCESS_KEY", servers.ACCESS_KEY)
            monkeypatch.setenv("VERDERER_OBJECTS_SECRET_KEY", servers.SECRET_KEY)
            code, found = self.findings(member)
            assert (code, found["object store"]["verdict"]) == (1, "fail")
            assert "--fix" in found["object store"]["remedy"]
            _, found = self.findings(member, "--fix")
            assert found["object store"]["verdict"] == "ok"
            for _ in range(2):  # made, and still so
                assert found["bucket lifecycle"]["verdict"] == "ok"
                assert found["bucket versioning"]["verdict"] == "ok"
                _, found = self.findings(member)


def test_the_page_about_the_command_line_is_up_to_date() -> None:
    written = cli_reference.PAGE.read_text(encoding="utf-8")
    assert written == cli_reference.page(written)


def test_the_page_of_reasons_is_up_to_date() -> None:
    assert reasons_reference.PAGE.read_text(encoding="utf-8") == reasons_reference.reference()


def test_the_exit_codes_of_the_page_are_the_exit_codes() -> None:
    written = cli_reference.PAGE.read_text(encoding="utf-8")
    for code in Exit:
        assert f"\n| {int(code)} | " in written
