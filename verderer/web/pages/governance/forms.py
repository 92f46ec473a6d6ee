"""What people type into the forms of governance, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from typing import Any

from verderer.core.errors import Invalid, Problem
from verderer.core.governance.definition import Definition, read_definition, write_quota
from verderer.store.views.governance import GroupRow


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupForm:
    """The fields of a resource group, as they were typed."""

    name: str = ""
    title: str = ""
    every: bool = False
    clusters: tuple[str, ...] = ()
    labels: str = ""
    """A line each, `key: value`."""
    quota: str = ""
    """A line each, `resource: amount`."""
    order: str = "fair"
    version: int = 0
    problems: tuple[Problem, ...] = field(default=())

    def definition(self) -> Definition:
        """What they mean.

        Raises:
            Invalid: with a problem for each field that is wrong.
        """
        return read_definition(
            title=self.title,
            clusters=None if self.every else self.clusters,
            labels=pairs(self.labels, "labels"),
            order=self.order,
            quota=pairs(self.quota, "quota"),
        )


def group_form(form: Any) -> GroupForm:
    """Read a form that was sent."""
    version = str(form.get("version", "0"))
    return GroupForm(
        name=str(form.get("name", "")).strip()[:100],
        title=str(form.get("title", ""))[:400],
        every=form.get("every") == "yes",
        clusters=tuple(str(one)[:63] for one in form.getall("cluster", [])),
        labels=str(form.get("labels", ""))[:4000],
        quota=str(form.get("quota", ""))[:4000],
        order=str(form.get("order", "fair"))[:20],
        version=int(version) if version.isdigit() and len(version) < 10 else 0,
    )


def form_of(group: GroupRow) -> GroupForm:
    """The form of a group as it is."""
    quotas = {
        a.resource: a.quota if a.target is None else a.target
        for a in group.accounts
        if a.quota is not None
    }
    return GroupForm(
        name=group.name,
        title=group.title,
        every=group.every_cluster,
        clusters=() if group.every_cluster else tuple(group.clusters),
        labels=_lines(group.labels),
        quota=_lines(write_quota(quotas)),
        order=group.order,
        version=group.version,
    )


def pairs(text: str, name: str) -> dict[str, str]:
    """Lines of `key: value` or `key=value`; empty ones are passed over.

    Raises:
        Invalid: a line is neither; the problem names the field and the line.
    """
    found: dict[str, str] = {}
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        mark = ":" if ":" in line else "="
        key, sign, value = (part.strip() for part in line.rpartition(mark))
        if sign and key and value:
            found[key] = value
        else:
            message = "a line is written NAME: VALUE"
            problems.append(Problem(field=name, line=number, message=message))
    if problems:
        raise Invalid("a line cannot be read", problems=problems)
    return found


def last_moment(text: str) -> datetime | None:
    """The end of a day such as 2027-03-31, UTC; None for an empty text.

    Raises:
        Invalid: it is no day.
    """
    if not text.strip():
        return None
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        problem = Problem(field="until", message="is not a day such as 2027-03-31")
        raise Invalid("the day cannot be read", problems=[problem]) from None
    return datetime.combine(day, time.max, tzinfo=UTC)


def _lines(values: Mapping[str, str]) -> str:
    return "\n".join(f"{key}: {value}" for key, value in values.items())
