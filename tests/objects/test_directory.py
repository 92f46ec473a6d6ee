"""The sorted walk: a page of it is the same page of the sorted whole."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from verderer.objects.backends import directory

NAMES = st.sampled_from(["a", "b", "a-", "a.b", "a0", "é", "z#1x"])
KEYS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


def write(root: Path, key: str) -> bool:
    try:
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_bytes(b"x")
    except OSError:
        return False  # a file stands where a folder is needed
    return True


@settings(max_examples=60, deadline=None)
@given(
    keys=st.sets(KEYS, max_size=15),
    prefix=st.one_of(st.just(""), KEYS.map(lambda key: key + "/")),
    after=st.one_of(st.just(""), KEYS),
    limit=st.integers(1, 6),
)
def test_a_page_is_a_slice_of_the_sorted_whole(
    keys: set[str], prefix: str, after: str, limit: int
) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        written = [key for key in sorted(keys) if write(root, key)]
        expected = sorted(key for key in written if key.startswith(prefix) and key > after)
        page = directory.page(root, prefix, after=after, limit=limit)
        assert [one.key for one in page] == expected[:limit]


def test_only_our_own_plain_files_are_listed(tmp_path: Path) -> None:
    write(tmp_path, "kept")
    write(tmp_path, "unfinished#3")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "linked-folder").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / os.fsdecode(b"not-utf8-\xff")).write_bytes(b"")
    assert [one.key for one in directory.page(tmp_path, "", after="", limit=10)] == ["kept"]
    partial = directory.page(tmp_path, "", after="", limit=10, partial=True)
    assert [one.key for one in partial] == ["unfinished#3"]


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert directory.page(tmp_path / "none", "", after="", limit=10) == []
