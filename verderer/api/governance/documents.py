"""Resource groups and approvals as documents."""

from __future__ import annotations

from typing import Any

from verderer.core.governance.definition import Definition, read_definition, write_quota
from verderer.core.governance.preview import Preview
from verderer.core.model.resources import format_quantity
from verderer.store.views.governance import ApprovalRow, EntitlementRow, GroupRow
from verderer.wire import governance as wire


def definition(data: wire.GroupIn) -> Definition:
    """What the caller wants.

    Raises:
        Invalid: with a problem for each field that is wrong.
    """
    return read_definition(
        title=data.title,
        clusters=data.clusters,
        labels=data.labels,
        order=data.order,
        quota=data.quota,
    )


def show_group(row: GroupRow) -> wire.GroupOut:
    """One line of the list."""
    return wire.GroupOut(**_group(row))


def show_detail(row: GroupRow, shares: list[tuple[str, str, int]]) -> wire.GroupDetailOut:
    """The whole of it; `shares` as the view gives them."""
    shown = [
        wire.ShareOut(project=p, resource=r, reserved=format_quantity(n, resource=r))
        for p, r, n in shares
    ]
    return wire.GroupDetailOut(**_group(row), shares=shown)


def show_preview(found: Preview) -> wire.PreviewOut:
    """What a change would do."""
    return wire.PreviewOut(
        never=found.never,
        freed=found.freed,
        quotas=[
            wire.QuotaChangeOut(
                resource=q.resource,
                before=_amount(q.before, q.resource),
                after=_amount(q.after, q.resource),
                reserved=format_quantity(q.reserved, resource=q.resource),
                sinks=q.sinks,
            )
            for q in found.quotas
        ],
        leaving=dict(found.leaving),
        joining=list(found.joining),
    )


def show_entitlement(row: EntitlementRow) -> wire.EntitlementOut:
    """A group as a project sees it."""
    return wire.EntitlementOut(
        name=row.name,
        title=row.title,
        kind=row.kind,
        expires_at=row.expires_at,
        labels=dict(row.labels),
        asked=row.asked,
    )


def show_approval(row: ApprovalRow) -> wire.ApprovalOut:
    """A request."""
    return wire.ApprovalOut(
        id=row.id,
        kind=row.kind,
        project_group=row.project_group,
        resource_group=row.resource_group,
        quota=write_quota(row.detail),
        reason=row.reason,
        expires_at=row.until,
        state=row.state,
        requested_by=row.requested_by,
        requested_at=row.requested_at,
        decided_by=row.decided_by,
        decided_at=row.decided_at,
        note=row.note,
    )


def _group(row: GroupRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "title": row.title,
        "every_cluster": row.every_cluster,
        "clusters": dict(row.clusters),
        "labels": dict(row.labels),
        "order": row.order,
        "version": row.version,
        "accounts": [
            wire.AccountOut(
                resource=a.resource,
                quota=_amount(a.quota, a.resource),
                target=_amount(a.target, a.resource),
                reserved=format_quantity(a.reserved, resource=a.resource),
                healthy=format_quantity(a.healthy, resource=a.resource),
            )
            for a in row.accounts
        ],
        "grants": [
            wire.GrantOut(
                project_group=g.project_group,
                kind=g.kind,
                expires_at=g.expires_at,
                granted_by=g.granted_by,
                granted_at=g.granted_at,
            )
            for g in row.grants
        ],
    }


def _amount(value: int | None, resource: str) -> str | None:
    return None if value is None else format_quantity(value, resource=resource)
