"""What the codes of problem details mean: for `/problems/CODE` and for the documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Explained:
    """One code. `status` is the HTTP status that it comes with."""

    status: int
    title: str
    meaning: str
    """One sentence: what happened and what helps."""


CODES: Mapping[str, Explained] = MappingProxyType(
    {
        "not_authenticated": Explained(
            401,
            "Log in first",
            "No credential was sent, or it is unknown, expired or revoked.",
        ),
        "wrong_password": Explained(
            401,
            "Wrong password",
            "The e-mail address and password do not belong together. When an own password is "
            "being changed the status is 403.",
        ),
        "join_token_used": Explained(
            401, "The join token was used", "It lets one agent in, once; make another one."
        ),
        "join_token_expired": Explained(
            401, "The join token has run out", "It lives for an hour unless said otherwise."
        ),
        "join_token_unknown": Explained(
            401, "No such join token", "It is misspelt, or a newer one has taken its place."
        ),
        "unknown_agent": Explained(
            401,
            "The agent is not known",
            "No agent of the cluster has this key: it was revoked, or another one has joined.",
        ),
        "replayed": Explained(
            401, "The signature was used before", "Each one is taken once; sign again."
        ),
        "clock_skew": Explained(
            401,
            "The clocks are apart",
            "Agent and control plane differ by more than five minutes; run NTP on both machines.",
        ),
        "not_allowed": Explained(
            403, "Not allowed", "The caller is known and may not do this; somebody else may."
        ),
        "no_resource_group": Explained(
            403,
            "No resource group",
            "The project's group may use no resource group, or has no default and none is named.",
        ),
        "not_granted": Explained(
            403,
            "Not granted",
            "The project may not use the resource group that was asked for; request access to it.",
        ),
        "label_policy": Explained(
            403,
            "The labels do not fit",
            "The resource group takes runs with certain labels only; the detail names them.",
        ),
        "must_change_password": Explained(
            403,
            "Choose a password first",
            "Logged in with a one-time password, which must be replaced before anything else.",
        ),
        "wrong_host": Explained(
            403,
            "Unknown host name",
            "The server listens on the loopback and was asked by a name that is not its own; set "
            "`server.public_url`.",
        ),
        "cross_site": Explained(
            403, "From another site", "The page that made the browser ask belongs to another site."
        ),
        "form_expired": Explained(
            403, "The form has expired", "Load the page again and send the form once more."
        ),
        "grant_invalid": Explained(
            403, "The address does not open it", "Its signature is wrong or its time is over."
        ),
        "ticket_invalid": Explained(
            403, "No ticket of ours", "What a step's carrier showed is malformed or forged."
        ),
        "ticket_over": Explained(
            403, "The ticket is over", "The attempt that the carrier works for has ended."
        ),
        "not_found": Explained(
            404, "Not found", "It does not exist, or the caller may not know that it does."
        ),
        "method_not_allowed": Explained(
            405, "Method not allowed", "The address exists and does not take this method."
        ),
        "changed_meanwhile": Explained(
            409,
            "Changed meanwhile",
            "Somebody else changed it since it was read: read it again and repeat the change.",
        ),
        "group_busy": Explained(
            409,
            "The resource group is in use",
            "Runs of it are not over: cancel them, or wait.",
        ),
        "group_not_empty": Explained(
            409, "The project group has projects", "Move its projects to another group first."
        ),
        "decided_already": Explained(
            409, "Decided already", "Somebody approved, denied or withdrew the request before."
        ),
        "conflict": Explained(
            409,
            "Conflict",
            "It cannot be done in the present state, or somebody else was first; look again.",
        ),
        "illegal_move": Explained(
            409, "Not in this state", "Nothing leads from the present state to the asked one."
        ),
        "constraint": Explained(
            409, "Refused by the database", "The change would break a rule of the data's schema."
        ),
        "stale_epoch": Explained(
            409,
            "Another session took over",
            "The agent's session was replaced by a newer one; say hello again, or stop.",
        ),
        "lease_lost": Explained(
            409, "Another scheduler leads", "The term that this belonged to is over."
        ),
        "cluster_busy": Explained(
            409, "Attempts are under way", "The cluster can be removed once nothing runs there."
        ),
        "cluster_heard": Explained(
            409, "The cluster is heard", "Only a silent cluster can be declared lost."
        ),
        "already_exists": Explained(409, "It exists", "There is one of this name already."),
        "object_exists": Explained(409, "The object exists", "It was to be made, not replaced."),
        "key_in_the_way": Explained(
            409, "Another object is in the way", "An object's key is the folder of another's."
        ),
        "last_admin": Explained(
            409, "Last admin", "Nobody would be left to administer the project."
        ),
        "range_not_satisfiable": Explained(
            416, "No such bytes", "The object ends before the range that was asked for."
        ),
        "too_large": Explained(
            413, "Too large", "More bytes or items were sent than the address takes."
        ),
        "invalid": Explained(
            422, "Invalid", "What was sent is malformed; `problems` names each field."
        ),
        "weak_password": Explained(
            422, "Weak password", "The new password is too short or one of those tried first."
        ),
        "invalid_key": Explained(
            422, "Not an object's key", "Keys are made of names and slashes, without `..`."
        ),
        "invalid_log_chunk": Explained(
            422, "Not a chunk of a log", "What was stored there cannot be read as one."
        ),
        "body_incomplete": Explained(
            422, "The body ended early", "Fewer bytes came than were announced; send them again."
        ),
        "malformed": Explained(
            400, "Malformed", "The request is not what HTTP or JSON allow, so nothing was read."
        ),
        "wrong_kind": Explained(
            400,
            "A cluster of another kind",
            "The join token is for a cluster of another kind than the agent serves.",
        ),
        "refused": Explained(400, "Refused", "The request is understood and cannot be granted."),
        "too_many": Explained(429, "Too often", "Wait for `retry_after_s` seconds."),
        "fault": Explained(
            503,
            "Temporarily unavailable",
            "Something that the platform depends on does not answer at the moment. Try again; "
            "the incident's number leads an operator to the cause.",
        ),
        "internal": Explained(
            500,
            "Internal error",
            "The platform made a mistake. The incident's number leads an operator to the cause.",
        ),
    }
)
