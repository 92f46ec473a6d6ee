"""What the image is made from is there, and reaches the build."""

from __future__ import annotations

import shlex

from tests.house.sources import ROOT

FOLDER = ROOT / "deploy" / "images"


def test_every_source_of_the_image_exists_and_is_not_left_out() -> None:
    lines = (FOLDER / "Dockerfile").read_text().splitlines()
    copies = [shlex.split(line)[1:-1] for line in lines if line.startswith("COPY ")]
    sources = {one for words in copies if not words[0].startswith("--from") for one in words}
    ignored = (FOLDER / "Dockerfile.dockerignore").read_text().splitlines()
    let_in = {line[1:] for line in ignored if line.startswith("!")}
    assert "pyproject.toml" in sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert source.split("/", maxsplit=1)[0] in let_in, source


def test_what_the_package_is_built_from_is_among_them() -> None:
    text = (FOLDER / "Dockerfile").read_text()
    for name in ("pyproject.toml", "hatch_build.py", "package-lock.json", "README.md", "LICENSE"):
        assert name in text
