"""Who the agent of these settings is: it has joined, it joins now, or it was given a credential."""

from __future__ import annotations

from pathlib import Path

from verderer.agent.identity.enrol import Door, join
from verderer.agent.identity.keeping import FileKeeper, Identity, Keeper
from verderer.agent.identity.renewing import Renewing
from verderer.agent.run import AgentConfig
from verderer.core.errors import Conflict, Refusal
from verderer.core.version import VERSION
from verderer.settings import Settings


def door(settings: Settings) -> Door:
    """The control plane of these settings."""
    ca_file = settings.agent.ca_file
    return Door(
        server_url=settings.agent_server_url, ca_file=str(ca_file) if ca_file is not None else None
    )


async def agent_config(settings: Settings, *, keeper: Keeper | None = None) -> AgentConfig:
    """How the agent runs, its credential included; it joins if it has a token and no identity.

    Raises:
        Refusal: there is no identity, no join token and no credential; or the token is refused.
        Fault: the control plane does not answer, or the identity cannot be read or kept.
    """
    keeper = keeper or FileKeeper(settings.agent_identity_file)
    way_in = door(settings)
    identity = await keeper.load()
    if identity is not None and not identity.joined:
        identity = None
    if identity is None and settings.agent.join_token is not None:
        token = settings.agent.join_token.reveal()
        identity = await join(
            way_in, keeper, token=token, kind=settings.agent.kind, version=VERSION
        )
    renewing = Renewing(way_in, keeper, identity) if identity is not None else None
    return AgentConfig(
        server_url=settings.agent_server_url,
        credential=renewing.credential if renewing else _given(settings.agent_credential_file),
        state_dir=settings.agent_spool_dir,
        version=VERSION,
        ca_file=way_in.ca_file,
        identity=renewing,
    )


async def join_now(settings: Settings, token: str, *, again: bool) -> Identity:
    """Spend a join token and keep what comes of it.

    Raises:
        Conflict: this agent has joined already, and `again` is not set.
        Refusal, Fault: as `enrol.join`.
    """
    keeper = FileKeeper(settings.agent_identity_file)
    known = None if again else await keeper.load()
    if known is not None and known.joined:
        raise Conflict(
            f"this agent has joined as cluster {known.cluster}",
            hint=f"--again lets it join anew; its identity is {keeper.path}.",
        )
    return await join(
        door(settings), keeper, token=token, kind=settings.agent.kind, version=VERSION
    )


def _given(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError as e:
        raise Refusal(
            "this agent has not joined a cluster",
            hint="`verderer agent join` with a token from Clusters → Add; for the cluster of "
            "this machine `verderer migrate` makes a credential.",
            code="not_joined",
        ) from e
    except OSError as e:
        raise Refusal(
            f"the agent's credential cannot be read: {e}",
            hint=f"Let the agent's user read {path}.",
        ) from e
