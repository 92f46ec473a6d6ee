"""Keeps what joining taught in a settings file, so that `verderer agent` needs no flags."""

from __future__ import annotations

import json
from pathlib import Path

from verderer.settings import Settings

_FILE = "verderer.toml"


def keep_settings(settings: Settings, cluster: str, config: Path | None) -> list[str]:
    """Write the data folder's settings file unless there is one; lines that say what is next.

    A file of somebody's own is never changed: the lines say what belongs into it.
    """
    path = config or settings.data_dir / _FILE
    wanted = _group(settings, cluster)
    folder = "" if config else f" --data-dir {settings.data_dir}"
    start = f"Start it: verderer agent{f' --config {config}' if config else folder}"
    if settings.agent.kind == "slurm" and settings.slurm.shared_dir is None:
        wanted += '\n[slurm]\nshared_dir = "/shared/verderer"   # a folder that all nodes see\n'
        start = f"Set slurm.shared_dir in {path}. {start}"
    if not path.exists():
        path.write_text(wanted, encoding="utf-8")
        return [f"Its settings are in {path}.", start]
    said = path.read_text(encoding="utf-8", errors="replace")
    if settings.agent_server_url in said and f'"{settings.agent.kind}"' in said:
        return [start]
    return [f"Put this into {path}:", *wanted.splitlines(), start]


def _group(settings: Settings, cluster: str) -> str:
    """TOML takes JSON's strings as they are."""
    values = {
        "kind": settings.agent.kind,
        "server_url": settings.agent_server_url,
        "cluster": cluster,
    }
    if settings.agent.ca_file is not None:
        values["ca_file"] = str(settings.agent.ca_file.absolute())
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
    if settings.agent.kind == "local":
        lines += ["", "[local_cluster]", "enabled = true"]
    return "\n".join(["[agent]", *lines]) + "\n"
