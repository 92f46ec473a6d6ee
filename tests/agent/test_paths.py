"""Nothing leads out of a working directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.agent.files.paths import (
    key_part,
    make_directories,
    name_of_key_part,
    open_inside,
    parts_of,
)
from verderer.core.errors import Invalid, NotFound


@pytest.mark.parametrize("path", ["", "/", "/etc/passwd", "../x", "a/../../b", "a/..", ".", "a\0b"])
def test_a_path_that_may_lead_out_is_refused(path: str) -> None:
    with pytest.raises(Invalid):
        parts_of(path)


def test_a_plain_path_comes_apart_at_its_slashes() -> None:
    assert parts_of("./a//b/c") == ("a", "b", "c")


@given(st.text(st.characters(exclude_characters="/\0"), min_size=1))
def test_every_name_survives_its_way_through_a_key(name: str) -> None:
    assert name_of_key_part(key_part(name)) == name


def test_folders_are_not_made_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    work = tmp_path / "work"
    work.mkdir()
    (work / "a").symlink_to(tmp_path / "out")
    with pytest.raises(Invalid, match="something else"):
        make_directories(str(work), ("a", "b"))
    assert list((tmp_path / "out").iterdir()) == []


def test_a_file_stands_where_a_folder_is_needed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    with pytest.raises(Invalid, match="cannot be a folder"):
        make_directories(str(tmp_path), ("a",))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("secret")
    work = tmp_path / "work"
    work.mkdir()
    (work / "real").write_text("real")
    (work / "inside").symlink_to("real")
    (work / "outside").symlink_to("../secret")
    (work / "absolute").symlink_to(tmp_path / "secret")
    (work / "up").symlink_to("..")
    (work / "loop").symlink_to("loop")
    (work / "dangling").symlink_to("nothing")
    os.mkfifo(work / "pipe")
    return work


@pytest.mark.parametrize("path", ["real", "inside"])
def test_what_lies_inside_is_opened(work: Path, path: str) -> None:
    found = open_inside(str(work), path)
    try:
        assert os.read(found.fd, 10) == b"real"
    finally:
        os.close(found.fd)


@pytest.mark.parametrize("path", ["outside", "absolute", "up", "up/secret"])
def test_a_link_that_leads_out_is_refused(work: Path, path: str) -> None:
    with pytest.raises(Invalid, match="leads out"):
        open_inside(str(work), path)


@pytest.mark.parametrize("path", ["nothing", "dangling", "real/x"])
def test_what_is_not_there_is_not_found(work: Path, path: str) -> None:
    with pytest.raises(NotFound):
        open_inside(str(work), path)


def test_a_pipe_is_refused_without_waiting_for_a_writer(work: Path) -> None:
    with pytest.raises(Invalid, match="neither a file nor a folder"):
        open_inside(str(work), "pipe")


def test_a_link_to_itself_is_an_error_of_the_disk(work: Path) -> None:
    with pytest.raises(OSError, match="symbolic links"):
        open_inside(str(work), "loop")
