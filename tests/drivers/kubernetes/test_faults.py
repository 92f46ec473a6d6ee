"""An API server that goes away, forgets, lies and falls silent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec
import pytest

from testbeds.kubernetes.cluster import Cluster
from tests.drivers.contract import (
    DEADLINE_S,
    Work,
    begin,
    seen,
    until,
    until_over,
    until_running,
)
from tests.drivers.kubernetes.proxy import Answer, Asked, Fault, Hang, LoseAnswer, Proxy
from tests.drivers.kubernetes.rig import KubernetesRig, jobs
from verderer.core import errors
from verderer.core.model.attempt import AttemptState
from verderer.drivers.contract import Observed
from verderer.drivers.kubernetes import watching
from verderer.drivers.kubernetes.calls import connection

pytestmark = pytest.mark.xdist_group("kubernetes")

GONE = msgspec.json.encode({"kind": "Status", "code": 410, "reason": "Expired", "message": "old"})
GONE_EVENT = b'{"type":"ERROR","object":' + GONE + b"}\n"


@pytest.fixture
async def proxy(cluster: Cluster) -> AsyncIterator[Proxy]:
    async with Proxy(cluster) as opened:
        yield opened


@pytest.fixture
async def kube(cluster: Cluster, proxy: Proxy) -> AsyncIterator[KubernetesRig]:
    """A driver that reaches the cluster through the proxy."""
    rig = KubernetesRig(cluster, url=proxy.url, silence_s=2.0)
    yield rig
    proxy.rule = lambda asked: None
    await rig.end()


def posts(plural: str) -> Callable[[Asked], bool]:
    return lambda asked: asked.method == "POST" and asked.path.endswith(f"/{plural}")


def watches(plural: str) -> Callable[[Asked], bool]:
    return lambda asked: asked.is_watch and asked.path.endswith(f"/{plural}")


async def observing(
    rig: KubernetesRig, reached: Callable[[Sequence[Observed] | None], bool]
) -> Sequence[Observed] | None:
    """Observe until it is so; None stands for a fault."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            found: Sequence[Observed] | None = await rig.driver.observe()
        except errors.Fault:
            found = None
        if reached(found):
            return found
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("plural", ["cubepipelines", "jobs"])
async def test_a_lost_answer_makes_no_second_start(
    kube: KubernetesRig, proxy: Proxy, plural: str
) -> None:
    await begin(kube.driver, kube.order(Work.SUCCEED))
    order = kube.order(Work.SUCCEED)
    proxy.fail(LoseAnswer(), posts(plural))
    with pytest.raises(errors.Fault):
        await begin(kube.driver, order)
    await begin(kube.driver, order)
    assert (await until_over(kube.driver, order.key)).state is AttemptState.SUCCEEDED
    assert len(kube.pods(order.key)) == 1


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(429, headers=(("Retry-After", "1"),)), id="too many requests"),
        pytest.param(Answer(500, b"oops"), id="an inner error"),
        pytest.param(Answer(401, b"{}"), id="an expired token"),
        pytest.param(Answer(200, b"<html>a portal</html>"), id="garbage"),
        pytest.param(Answer(503), id="unavailable"),
    ],
)
async def test_trouble_of_the_platform_is_never_the_steps_end(
    kube: KubernetesRig, proxy: Proxy, answer: Answer
) -> None:
    await begin(kube.driver, kube.order(Work.SUCCEED))
    order = kube.order(Work.SUCCEED)
    proxy.fail(answer, posts("jobs"))
    with pytest.raises(errors.Fault):
        await begin(kube.driver, order)
    assert (await until_over(kube.driver, order.key)).state is AttemptState.SUCCEEDED


async def test_no_answer_at_all_is_a_fault_in_time(
    kube: KubernetesRig, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CALL_S", 0.5)
    other = KubernetesRig(kube.cluster, url=proxy.url)
    await begin(other.driver, other.order(Work.SUCCEED))
    proxy.fail(Hang(), posts("cubepipelines"))
    began = time.monotonic()
    with pytest.raises(errors.Fault, match="in time"):
        await begin(other.driver, other.order(Work.SUCCEED))
    assert time.monotonic() - began < 10
    await other.driver.close()


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Answer(410, GONE), id="as an answer"),
        pytest.param(Answer(200, GONE_EVENT), id="inside the stream"),
    ],
)
@pytest.mark.parametrize("plural", ["cubepipelines", "jobs", "pods"])
async def test_a_version_that_is_gone_leads_to_a_new_list(
    kube: KubernetesRig, proxy: Proxy, plural: str, fault: Fault
) -> None:
    key = await begin(kube.driver, kube.order(Work.HANG))
    before = await until_running(kube.driver, key)
    proxy.fail(fault, watches(plural), times=3)
    await proxy.cut()
    await asyncio.sleep(0.3)
    assert await seen(kube.driver, key) == before
    await kube.driver.stop(key, grace_s=0)
    assert (await until_over(kube.driver, key)).state is AttemptState.CANCELLED


async def test_what_vanished_while_nobody_looked_is_missed(
    kube: KubernetesRig, proxy: Proxy, cluster: Cluster
) -> None:
    key = await begin(kube.driver, kube.order(Work.HANG))
    await until_running(kube.driver, key)
    proxy.rule = lambda asked: Answer(503) if asked.method == "GET" else None
    await proxy.cut()
    cluster.call("DELETE", f"{jobs()}/{key}", {"propagationPolicy": "Background"})
    deadline = time.monotonic() + DEADLINE_S
    while kube.pods(key):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
    proxy.fail(Answer(410, GONE), lambda asked: asked.is_watch, times=12)
    assert (await until_over(kube.driver, key)).state is AttemptState.LOST


async def test_a_list_whose_pages_expire_is_read_again(
    kube: KubernetesRig, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "PAGE", 2)
    orders = [kube.order(Work.HANG) for _ in range(7)]
    for order in orders:
        await begin(kube.driver, order)
    proxy.fail(Answer(410, GONE), lambda asked: "continue=" in asked.query, times=2)
    await kube.restart()
    assert len(await kube.driver.observe()) == 7
    assert any("continue=" in asked.query for asked in proxy.asked)


async def test_a_silent_watch_is_opened_again(kube: KubernetesRig, proxy: Proxy) -> None:
    await begin(kube.driver, kube.order(Work.SUCCEED))
    proxy.fail(Answer(200, stays_open=True), lambda asked: asked.is_watch, times=6)
    await proxy.cut()
    key = await begin(kube.driver, kube.order(Work.SUCCEED))
    assert (await until_over(kube.driver, key)).state is AttemptState.SUCCEEDED


async def test_a_view_that_is_too_old_is_not_given_out(
    kube: KubernetesRig, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_UNSEEN_S", 0.5)
    key = await begin(kube.driver, kube.order(Work.HANG))
    await until_running(kube.driver, key)
    proxy.rule = lambda asked: Answer(503)
    await proxy.cut()
    assert await observing(kube, lambda found: found is None) is None
    proxy.rule = lambda asked: None
    found = await observing(kube, lambda found: found is not None)
    assert [o.state for o in found or () if o.key == key] == [AttemptState.RUNNING]


async def test_a_stop_whose_answer_is_lost_is_carried_out(
    kube: KubernetesRig, proxy: Proxy
) -> None:
    key = await begin(kube.driver, kube.order(Work.HANG))
    await until_running(kube.driver, key)
    proxy.fail(
        LoseAnswer(), lambda asked: asked.method == "PATCH" and asked.path.endswith(str(key))
    )
    with pytest.raises(errors.Fault):
        await kube.driver.stop(key, grace_s=0)
    assert (await until_over(kube.driver, key)).state is AttemptState.CANCELLED


async def test_output_goes_on_after_a_broken_connection(kube: KubernetesRig, proxy: Proxy) -> None:
    kube.say(b"one\ntwo\nthree\n")
    key = await begin(kube.driver, kube.order(Work.HANG))
    await until(kube.driver, key, lambda o: o.state is AttemptState.RUNNING)
    output = kube.driver.logs(key, replica=0, after=0)
    first = await anext(output)
    await proxy.cut()
    got = bytearray(first.data)
    try:
        async for piece in output:
            got += piece.data
            break
    except errors.Fault:
        pass
    await kube.driver.stop(key, grace_s=0)
    await until_over(kube.driver, key)
    assert bytes(got) == b"one\ntwo\nthree\n"[: len(got)]


async def test_the_way_there_may_be_wrong(cluster: Cluster) -> None:
    async with Proxy(cluster) as gone:
        url = gone.url
    rig = KubernetesRig(cluster, url=url)
    with pytest.raises(errors.Fault) as refused:
        await rig.driver._api.get("/version", dict)
    assert "cannot be reached" in refused.value.message
    await rig.driver.close()


async def test_a_certificate_of_another_authority_is_named(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rig = KubernetesRig(cluster, url=f"https://localhost.localdomain:{cluster.port}")
    rig.connection.config.cluster.server = cluster.url
    rig.connection.config.cluster.certificate_auth = None
    rig.driver = rig._make()
    with pytest.raises(errors.Fault) as refused:
        await rig.driver._api.get("/version", dict)
    assert "certificate is not accepted" in refused.value.message
    assert "authority" in refused.value.hint
    await rig.driver.close()


def test_rules_see_requests() -> None:
    assert Asked("GET", "/x", "watch=true").is_watch
