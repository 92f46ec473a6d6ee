"""Finds every text that pages show, and merges new ones into the catalogues.

    python -m tests.web.catalogue

adds what is missing with an empty translation, and drops what nothing shows any more.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

WEB = Path(__file__).parents[2] / "verderer" / "web"
METHODS = [("**.py", "python"), ("**.html", "jinja2")]
KEYWORDS = {"_": None, "N_": None, "gettext": None, "ngettext": (1, 2)}
OPTIONS = {"**.html": {"trimmed": "false", "silent": "false"}}


def extract() -> Catalog:
    """Everything marked for translation in pages, templates and tables of words."""
    found = Catalog(fuzzy=False)
    for file, line, message, _, context in extract_from_dir(
        WEB, METHODS, OPTIONS, KEYWORDS, callback=None
    ):
        found.add(message, locations=[(file, line)], context=context)
    return found


def catalogue(code: str) -> Path:
    """Where the words of a language are."""
    return WEB / "i18n" / code / "LC_MESSAGES" / "messages.po"


def merge(code: str) -> list[str]:
    """Bring one catalogue up to date; what has no translation yet comes back."""
    path = catalogue(code)
    with path.open("rb") as file:
        known = read_po(file, locale=code)
    known.update(extract(), no_fuzzy_matching=True)
    known.obsolete.clear()
    known.project, known.version, known.header_comment = "Verderer", "console", ""
    known.msgid_bugs_address = known.last_translator = known.language_team = ""
    known.creation_date = known.revision_date = datetime(2026, 1, 1, tzinfo=UTC)
    for message in known:
        message.locations = []
    with path.open("wb") as file:
        write_po(file, known, width=100, sort_output=True, omit_header=False)
    return [str(m.id) for m in known if m.id and not all_filled(m.string)]


def all_filled(text: str | tuple[str, ...] | list[str]) -> bool:
    """Whether every form of a translation is there."""
    return all(text) if isinstance(text, tuple | list) else bool(text)


if __name__ == "__main__":
    for message in merge("zh_Hans"):
        print("untranslated:", message)
