"""Style sheets, scripts and icons: served under names that change with their bytes."""

from __future__ import annotations

import hashlib
import mimetypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from verderer.core.errors import Fault

_FOLDER = Path(__file__).parent / "assets"
_SUFFIXES = frozenset({".css", ".js", ".svg", ".txt", ".png"})
_OPENING = re.compile(r"<svg[^>]*>", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Asset:
    """A file, in memory: there are few and they are small."""

    body: bytes
    media_type: str
    version: str
    """Changes whenever the bytes do."""


class Assets:
    """All files below `assets/`, read once."""

    def __init__(self, files: Mapping[str, Asset]) -> None:
        self._files = dict(files)
        self._icons = {
            Path(name).stem: _inline(asset.body.decode())
            for name, asset in self._files.items()
            if name.startswith("vendor/icons/")
        }

    @classmethod
    def load(cls, folder: Path = _FOLDER) -> Assets:
        """Read them.

        Raises:
            Fault: the browser's libraries are not there.
        """
        if not (folder / "vendor" / "htmx.min.js").is_file():
            raise Fault(
                "the console's browser libraries are missing",
                hint="Install the package once more: `pip install -e .` fetches them with npm.",
            )
        paths = (p for p in sorted(folder.rglob("*")) if p.suffix in _SUFFIXES and p.is_file())
        return cls({path.relative_to(folder).as_posix(): _read(path) for path in paths})

    def get(self, name: str) -> Asset | None:
        """The file called `name`, such as `css/base.css`."""
        return self._files.get(name)

    def url(self, name: str) -> str:
        """Where a page finds it; may be kept for ever.

        Raises:
            KeyError: there is no such file.
        """
        return f"/assets/{name}?v={self._files[name].version}"

    def icon(self, name: str, label: str = "") -> Markup:
        """An icon as inline SVG; without a label it is decoration and screen readers skip it.

        Raises:
            KeyError: the icon is not in the list of `hatch_build.py`.
        """
        inner = self._icons[name]
        if label:
            return Markup(
                '<svg class="icon" viewBox="0 0 24 24" role="img" aria-label="{}">'
            ).format(label) + Markup(f"{inner}</svg>")  # noqa: S704 - a file of ours
        return Markup(  # noqa: S704 - a file of ours
            f'<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">{inner}</svg>'
        )


def _read(path: Path) -> Asset:
    body = path.read_bytes()
    media = mimetypes.types_map.get(path.suffix, "application/octet-stream")
    if path.suffix == ".js":
        media = "text/javascript"
    if media.startswith("text/"):
        media += "; charset=utf-8"
    return Asset(body, media, hashlib.sha256(body).hexdigest()[:12])


def _inline(svg: str) -> str:
    inner = _OPENING.sub("", _COMMENT.sub("", svg), count=1).replace("</svg>", "")
    return re.sub(r"\s+", " ", inner).strip()
