"""Times, durations, bytes and amounts, the way a language writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from babel.dates import format_datetime
from babel.numbers import format_decimal

from verderer.core.model.resources import CPU, counts_bytes
from verderer.web.language import N_, Language

AGO = {
    "now": N_("just now"),
    "s": N_("%(n)s s ago"),
    "min": N_("%(n)s min ago"),
    "h": N_("%(n)s h ago"),
    "d": N_("%(n)s d ago"),
}
"""Also given to the browser, which keeps relative times true."""

SPAN = {
    "ms": N_("%(n)s ms"),
    "s": N_("%(n)s s"),
    "min": N_("%(n)s min"),
    "h": N_("%(n)s h"),
    "d": N_("%(n)s d"),
}

_RESOURCES = {
    CPU: N_("cores"),
    "memory": N_("memory"),
    "ephemeral-storage": N_("disk"),
    "nvidia.com/gpu": N_("NVIDIA GPUs"),
    "amd.com/gpu": N_("AMD GPUs"),
    "google.com/tpu": N_("Google TPUs"),
    "huawei.com/Ascend910": N_("Ascend 910 NPUs"),
}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@dataclass(frozen=True, slots=True)
class Formats:
    """Filters of one language."""

    language: Language

    def ago(self, at: datetime | None, now: datetime | None = None) -> str:
        """`5 min ago`; the date once it is more than thirty days."""
        if at is None:
            return ""
        seconds = ((now or datetime.now(UTC)) - at).total_seconds()
        if seconds < 5:
            return self.language.gettext(AGO["now"])
        for unit, size, most in (("s", 1, 60), ("min", 60, 60), ("h", 3600, 48), ("d", 86400, 30)):
            if seconds < size * most:
                return self.language.gettext(AGO[unit]) % {"n": int(seconds // size)}
        return str(format_datetime(at, "yyyy-MM-dd", locale=self.language.locale))

    def moment(self, at: datetime | None) -> str:
        """The whole date and time, UTC; the browser writes it in the reader's own zone."""
        if at is None:
            return ""
        text = format_datetime(at.astimezone(UTC), "medium", locale=self.language.locale)
        return f"{text} UTC"

    def span(self, seconds: float | timedelta | None) -> str:
        """`850 ms`, `14.8 s`, `3 min 20 s`, `6 h 12 min`, `4 d 3 h`."""
        if seconds is None:
            return ""
        s = seconds.total_seconds() if isinstance(seconds, timedelta) else float(seconds)
        s = max(0.0, s)
        if 0 < s < 1:
            return self._unit("ms", self.number(max(1, round(1000 * s))))
        if s < 60:
            return self._unit("s", self.number(round(s, 1) if s < 20 else round(s)))
        for big, small, size in (("min", "s", 60), ("h", "min", 3600), ("d", "h", 86400)):
            if s < size * {"min": 60, "h": 24, "d": 100_000}[big]:
                whole, rest = divmod(s, size)
                rest = int(rest // {"s": 1, "min": 60, "h": 3600}[small])
                head = self._unit(big, f"{int(whole)}")
                return f"{head} {self._unit(small, str(rest))}" if rest else head
        return self._unit("d", self.number(int(s // 86400)))

    def number(self, value: float) -> str:
        """With the language's separators."""
        return str(format_decimal(value, locale=self.language.locale))

    def size(self, value: int | None) -> str:
        """Bytes in the largest binary unit that leaves at least 1."""
        if value is None:
            return ""
        amount, unit = float(value), 0
        while amount >= 1024 and unit < len(_UNITS) - 1:
            amount, unit = amount / 1024, unit + 1
        digits = round(amount) if amount >= 100 or unit == 0 else round(amount, 1)
        return f"{self.number(digits)} {_UNITS[unit]}"

    def amount(self, value: int, resource: str) -> str:
        """An amount in base units, without the resource's name: `8`, `1.5`, `4 GiB`."""
        if counts_bytes(resource):
            return self.size(value)
        return self.number(value / 1000)

    def resource(self, resource: str) -> str:
        """The name of a resource for people; unknown ones keep their own."""
        known = _RESOURCES.get(resource)
        return self.language.gettext(known) if known else resource

    def asked(self, requests: Mapping[str, int]) -> str:
        """`2 cores · 4 GiB memory · 8 NVIDIA GPUs`."""
        return " · ".join(
            f"{self.amount(value, name)} {self.resource(name)}"
            for name, value in sorted(requests.items(), key=_importance)
        )

    def percent(self, part: float, whole: float) -> str:
        """`91 %`."""
        return f"{round(100 * part / whole) if whole else 0} %"

    def _unit(self, unit: str, n: str) -> str:
        return self.language.gettext(SPAN[unit]) % {"n": n}


def _importance(pair: tuple[str, int]) -> tuple[int, str]:
    name = pair[0]
    return ({CPU: 1, "memory": 2}.get(name, 0 if "/" in name else 3), name)


def iso(at: datetime | None) -> str:
    """For the `datetime` attribute."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds") if at else ""


_BROWSERS = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def browser(agent: str) -> str:
    """`Firefox · Linux` out of what a browser calls itself, or its first words."""
    name = next((known for mark, known in _BROWSERS if mark in agent), "")
    system = next((known for mark, known in _SYSTEMS if mark in agent), "")
    return " · ".join(part for part in (name, system) if part) or agent[:60] or "–"
