"""Why a step whose cluster is silent does not start elsewhere, when it says that it may."""

from __future__ import annotations

from verderer.core.explain import Reason, Why
from verderer.core.fencing import Waits, behind_fence
from verderer.core.model.cluster import OFFLINE_AFTER_S
from verderer.core.pipeline.spec import OnClusterLost
from verderer.store.database import Tx
from verderer.store.views.why import StuckStep
from verderer.usecases.context import Context


async def explain_silence(ctx: Context, tx: Tx, step: StuckStep) -> Reason | None:
    """What stands between the step and another attempt; None: its cluster is heard, or it waits.

    A step that is sure to have stopped already is given up within seconds.
    """
    silence = step.silence
    if silence is None or silence.silent_s < OFFLINE_AFTER_S:
        return None
    policy = (await ctx.pipelines.load(tx, step.document)).steps[step.template].on_cluster_lost
    if policy is OnClusterLost.WAIT:
        return None
    verdict = behind_fence(policy, silence)
    if isinstance(verdict, Waits) and verdict.left_s is None:
        return Reason(why=Why.NO_FENCE, cluster=step.cluster, seconds=silence.silent_s)
    left_s = verdict.left_s if isinstance(verdict, Waits) else 0.0
    return Reason(why=Why.FENCE, cluster=step.cluster, seconds=left_s or 0.0)
