"""`make demo`: start Verderer on this machine and train a model with it, start to end.

Everything is real: the embedded PostgreSQL, the server, the scheduler, the local cluster, and a
pipeline of six steps that trains on handwritten digits and logs through the MLflow client.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("VERDERER_DEMO_DIR", HERE.parents[1] / ".verderer" / "demo"))
BIN = Path(sys.executable).parent
EMAIL = "admin@localhost"


def main() -> int:
    DATA.mkdir(parents=True, exist_ok=True)
    port = free_port(8642)
    url = f"http://127.0.0.1:{port}"
    log = DATA / "up.log"
    say(f"Starting Verderer on {url} (its log: {log})")
    began = time.monotonic()
    up = start(port, log)
    try:
        wait_until_ready(up, url, log)
        took = time.monotonic() - began
        say(f"Ready after {took:.1f} s: PostgreSQL, server, scheduler, local cluster")
        password = own_password(url, log)
        token = call(
            url, "/api/v1/login", {"email": EMAIL, "password": password, "machine": "demo"}
        )
        run = train(url, token["token"])
        show_results(url, token["token"], run)
        say(f"\nPage    {url}/runs/{run}")
        say(f"Login   {EMAIL}  {password}")
        if sys.stdin.isatty() and not os.environ.get("CI"):
            say("\nCtrl-C stops everything; `make demo` starts it again with its data.")
            up.wait()
            raise SystemExit(f"Verderer ended by itself; its log is {log}")
        say(f"\nNobody is at the terminal, so it stops now. To look at the page:\n  {again(port)}")
    except KeyboardInterrupt:
        say("\nStopping")
    finally:
        up.send_signal(signal.SIGINT)
        up.wait(90)
    return 0


def again(port: int) -> str:
    """What starts the same platform without the demo."""
    verderer = BIN / "verderer"
    with contextlib.suppress(ValueError):
        verderer = verderer.relative_to(Path.cwd())
    return f"{verderer} up --data-dir {DATA} --port {port}"


def start(port: int, log: Path) -> subprocess.Popen[bytes]:
    """Steps find this environment's `python` first: that is where the demo's libraries are."""
    environment = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
    command = [BIN / "verderer", "up", "--data-dir", DATA, "--port", str(port)]
    with log.open("wb") as out:
        return subprocess.Popen(
            [str(word) for word in command],
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )


def wait_until_ready(up: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if up.poll() is not None:
            break
        text = log.read_text(encoding="utf-8", errors="replace")
        if "Verderer is ready at" in text and is_up(url):
            return
        time.sleep(0.1)
    tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
    raise SystemExit("Verderer did not start:\n" + "\n".join(tail))


def own_password(url: str, log: Path) -> str:
    """Replace the one-time password by one that a later demo can use again."""
    kept = DATA / "demo-login.json"
    if kept.exists():
        return str(json.loads(kept.read_text())["password"])
    shown = re.search(r"one-time password: (\S+)", log.read_text(encoding="utf-8"))
    if not shown:
        raise SystemExit(f"{DATA} was made by somebody else: remove it, or set VERDERER_DEMO_DIR")
    fresh = "-".join(secrets.token_hex(3) for _ in range(3))
    request = {"email": EMAIL, "password": shown[1], "new_password": fresh, "machine": "demo"}
    call(url, "/api/v1/login", request)
    kept.touch(mode=0o600)
    kept.write_text(json.dumps({"password": fresh}))
    return fresh


def train(url: str, token: str) -> str:
    """Submit the pipeline and watch it with the command line, as a person would."""
    environment = os.environ | {"VERDERER_URL": url, "VERDERER_TOKEN": token}
    pipeline = str(HERE / "pipeline.yaml")
    say("\n$ verderer run examples/digits/pipeline.yaml --project demo")
    done = subprocess.run(
        [str(BIN / "verderer"), "run", pipeline, "--project", "demo", "--watch"],
        env=environment,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit("The pipeline did not succeed.")
    return str(call(url, "/api/v1/runs?project=demo&limit=1", token=token)["items"][0]["id"])


def show_results(url: str, token: str, run: str) -> None:
    """Read the metrics back with the unmodified MLflow client, and say where the model lies."""
    os.environ |= {"MLFLOW_TRACKING_TOKEN": token}
    from mlflow import MlflowClient  # noqa: PLC0415 (takes seconds)

    client = MlflowClient(f"{url}/mlflow/demo")
    experiments = [e.experiment_id for e in client.search_experiments()]
    found = client.search_runs(experiments, f"tags.`verderer.run` = '{run}'")
    rows = [("step", "hidden", "rate", "loss", "valid", "test")]
    for one in sorted(found, key=lambda r: ("train" not in r.info.run_name, r.info.run_name)):
        given, measured = one.data.params, one.data.metrics
        cells = [number(measured, name) for name in ("loss", "valid_accuracy", "test_accuracy")]
        rows.append((one.info.run_name, given.get("hidden", ""), given.get("rate", ""), *cells))
    say()
    for name, *cells in rows:
        say((f"{name:10}" + "".join(f"{cell:>9}" for cell in cells)).rstrip())
    best = next(one for one in found if one.info.run_name == "choose")
    accuracy = best.data.metrics["test_accuracy"]
    say(f"\nBest    {best.data.params['chosen']}: {accuracy:.1%} of the test images are read right")
    for one in call(url, f"/api/v1/runs/{run}/artifacts", token=token)["items"]:
        if one["step"] == "choose":
            say(f"Model   {DATA / 'objects' / one['key']}")
            say(f"        {one['files']} files, {one['size']:,} bytes, listed at {url}{one['url']}")


def number(metrics: dict[str, float], name: str) -> str:
    return f"{metrics[name]:.4f}" if name in metrics else ""


def call(url: str, path: str, body: object = None, *, token: str = "") -> Any:
    request = urllib.request.Request(url + path, method="GET" if body is None else "POST")
    request.add_header("Content-Type", "application/json")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(request, data, timeout=30) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as e:
        raise SystemExit(f"{path}: {e.read().decode(errors='replace')}") from e


def is_up(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def free_port(wanted: int) -> int:
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the last demo's may linger
        try:
            s.bind(("127.0.0.1", wanted))
        except OSError:
            s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def say(text: str = "") -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
