"""Which language a page speaks, and its words: gettext catalogues, read when the process starts.

The source is English. Catalogues are committed as text and compiled in memory, so a clone and a
wheel behave alike and nobody can forget to build them.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from babel import Locale
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.support import NullTranslations, Translations

SOURCE: Final = "en"
NAMES: Final = {"en": "English", "zh_Hans": "简体中文"}
"""Languages that are complete, each by its own name."""

_FOLDER: Final = Path(__file__).parent / "i18n"
_TAGS: Final = {"en": "en", "zh_Hans": "zh-Hans"}


@dataclass(frozen=True, slots=True)
class Language:
    """One language with its words."""

    code: str
    locale: Locale
    words: NullTranslations

    @property
    def tag(self) -> str:
        """For the `lang` attribute: BCP 47."""
        return _TAGS[self.code]

    def gettext(self, message: str) -> str:
        """The message in this language, or itself."""
        return str(self.words.gettext(message)) if message else ""

    def ngettext(self, one: str, many: str, n: int) -> str:
        """The right form for `n` things."""
        return str(self.words.ngettext(one, many, n))


class Catalogues:
    """All languages, by code."""

    def __init__(self, languages: Mapping[str, Language]) -> None:
        self._languages = dict(languages)

    @classmethod
    def load(cls) -> Catalogues:
        """Read every catalogue.

        Raises:
            OSError: a catalogue is missing from the installation.
        """
        return cls({code: Language(code, Locale.parse(code), _words(code)) for code in NAMES})

    def get(self, code: str) -> Language:
        """The language, or English."""
        return self._languages.get(code, self._languages[SOURCE])

    def choose(self, *wishes: str, accept: str = "") -> Language:
        """The first of `wishes` that exists, or the best of an Accept-Language header."""
        for wish in wishes:
            if (code := _code_of(wish)) in self._languages:
                return self._languages[code]
        for tag in _accepted(accept):
            if (code := _code_of(tag)) in self._languages:
                return self._languages[code]
        return self._languages[SOURCE]

    def all(self) -> list[Language]:
        """Every language."""
        return list(self._languages.values())


def N_(message: str) -> str:  # noqa: N802 - the name that extractors know
    """Mark a text to be translated where it is shown."""
    return message


def _words(code: str) -> NullTranslations:
    if code == SOURCE:
        return NullTranslations()
    with (_FOLDER / code / "LC_MESSAGES" / "messages.po").open("rb") as file:
        catalogue = read_po(file, locale=code)
    compiled = io.BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    return Translations(compiled)


def _accepted(header: str) -> list[str]:
    """Language tags of the header, the most wanted first."""
    found: list[tuple[float, int, str]] = []
    for place, part in enumerate(header[:1000].split(",")[:20]):
        tag, _, quality = part.strip().partition(";q=")
        try:
            weight = float(quality) if quality else 1.0
        except ValueError:
            continue
        if tag and weight > 0:
            found.append((-weight, place, tag))
    return [tag for _, _, tag in sorted(found)]


def _code_of(tag: str) -> str:
    parts = tag.lower().replace("_", "-").split("-")
    if parts[0] == "zh":
        return "" if {"hant", "tw", "hk", "mo"} & set(parts) else "zh_Hans"
    return parts[0]
