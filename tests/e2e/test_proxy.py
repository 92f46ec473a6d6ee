"""The proxy and the scraper of `docs/deploy.md`, as they stand there, before real servers."""

from __future__ import annotations

import asyncio
import http.client
import json
import shutil
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.chaos.platform import free_port, rows, wait_for
from tests.e2e.apart import Outside, answers, outside
from tests.e2e.commands import PASSWORD, Cli
from tests.e2e.test_apart import PASSING
from tests.e2e.test_tls import make_certificates
from tests.house.sources import ROOT

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300), pytest.mark.xdist_group("chaos")]

PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
TOKEN = "a-token-of-the-scraper"
FRAME = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u;
  scgi_temp_path {folder}/s;
  {block}
}}
"""


@dataclass(frozen=True)
class Site:
    """Two servers behind the proxy, and a command line that is logged in through it."""

    outside: Outside
    port: int
    cli: Cli

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"


def block_of(language: str, words: str) -> str:
    """The page's first block of a language that holds `words`."""
    blocks = PAGE.split(f"```{language}\n")[1:]
    return next(text for block in blocks if words in (text := block.partition("```")[0]))


@contextmanager
def running(*command: str, log: Path) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    nginx = shutil.which("nginx")
    if nginx is None:
        pytest.skip("NOT TESTED behind a proxy: no nginx on PATH")
    with outside() as there:
        make_certificates(there.folder)
        port = free_port()
        there.environment |= {
            "VERDERER_SERVER_PUBLIC_URL": f"https://localhost:{port}",
            "VERDERER_METRICS_TOKEN": TOKEN,
            "FORWARDED_ALLOW_IPS": "127.0.0.1",
        }
        assert there.command("doctor", "--server", "--fix").stdout
        assert there.command("migrate").returncode == 0
        found = there.command("recover", "admin@localhost").stdout
        urls = [there.start_server(), there.start_server()]
        there.start("scheduler")
        there.start("agent", VERDERER_AGENT_SERVER_URL=urls[0])
        block = block_of("nginx", "upstream verderer")
        for said, meant in {
            "10.0.0.11:8642": urls[0].removeprefix("http://"),
            "10.0.0.12:8642": urls[1].removeprefix("http://"),
            "listen 443": f"listen 127.0.0.1:{port}",
            "verderer.example.com": "localhost",
            "/etc/ssl/verderer.pem": f"{there.folder}/own.crt",
            "/etc/ssl/verderer.key": f"{there.folder}/own.key",
        }.items():
            assert said in block
            block = block.replace(said, meant)
        config = there.folder / "nginx.conf"
        config.write_text(FRAME.format(folder=there.folder, block=block))
        with running(nginx, "-c", str(config), log=there.folder / "nginx.log"):
            cli = Cli(there.folder / "home")
            cli.environment["SSL_CERT_FILE"] = str(there.folder / "ca.crt")
            wait_for(lambda: listens(there, port), 30, "the proxy answers")
            cli.log_in(f"https://localhost:{port}", found.split()[-1])
            yield Site(there, port, cli)


def listens(there: Outside, port: int) -> bool:
    trusted = ssl.create_default_context(cafile=str(there.folder / "ca.crt"))
    try:
        address = f"https://localhost:{port}/healthz"
        with urllib.request.urlopen(address, context=trusted, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def test_a_run_is_followed_through_the_proxy(site: Site) -> None:
    file = site.outside.folder / "passing.yaml"
    file.write_text(PASSING)
    assert "succeeded" in site.cli("run", str(file), "--watch")
    run = site.cli.read("runs")[0]["id"]
    assert site.cli("logs", "-f", f"{run}/read") == "over the counter\n"
    slow = (
        "metadata: {name: slow, project: demo}\nsteps:\n- {name: a, script: 'echo one; sleep 60'}"
    )
    run = site.cli.submit(site.outside.folder, slow)
    with site.cli.beginning("logs", "-f", f"{run}/a") as lines:
        lines.until("one")  # nothing holds it back until the step is over
    site.cli("cancel", run)


def test_people_are_known_by_their_own_address(site: Site) -> None:
    trusted = ssl.create_default_context(cafile=str(site.outside.folder / "ca.crt"))
    address = ("127.0.0.7", 0)
    body = json.dumps({"email": "admin@localhost", "password": f"not {PASSWORD}"})
    lie = {"X-Forwarded-For": "203.0.113.9", "Content-Type": "application/json"}
    to = ("localhost", site.port)
    with closing(
        http.client.HTTPSConnection(*to, context=trusted, source_address=address, timeout=20)
    ) as connection:
        connection.request("POST", "/api/v1/login", body, lie)
        with connection.getresponse() as answer:
            assert answer.status == 401
    query = "SELECT origin FROM audit WHERE action = 'session.refused'"
    (row,) = asyncio.run(rows(site.outside.dsn, query))
    assert row["origin"] == "127.0.0.7"


def test_the_scraper_of_the_page_reads_the_metrics(site: Site) -> None:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("NOT TESTED with a real Prometheus: none on PATH")
    folder, port = site.outside.folder, free_port()
    (folder / "token").write_text(TOKEN)
    text = block_of("yaml", "scrape_configs").replace(
        "verderer.example.com", f"localhost:{site.port}"
    )
    text = text.replace("/etc/prometheus/verderer-token", str(folder / "token"))
    text += f"    tls_config: {{ca_file: {folder / 'ca.crt'}}}\n    scrape_interval: 1s\n"
    config = folder / "prometheus.yml"
    config.write_text(text)
    flags = (f"--storage.tsdb.path={folder / 'tsdb'}", f"--web.listen-address=127.0.0.1:{port}")
    with running(program, f"--config.file={config}", *flags, log=folder / "prometheus.log"):
        wait_for(lambda: answers(f"http://127.0.0.1:{port}/-/ready"), 60, "Prometheus is ready")
        for metric, value in (
            ('up{job="verderer"}', "1"),
            ("verderer_scheduler_led", "1"),
            ("verderer_cluster_up", "1"),
        ):
            wait_for(lambda: value_of(port, metric) == value, 60, f"{metric} is {value}")  # noqa: B023


def value_of(port: int, query: str) -> str:
    address = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
    with urllib.request.urlopen(address, timeout=10) as answer:
        found = json.loads(answer.read())["data"]["result"]
    return str(found[0]["value"][1]) if found else ""
