"""What there is to run on, and taking it out of use."""

from __future__ import annotations

from tests.api.platform import ONE, Platform


async def test_a_cluster_is_shown_with_its_nodes_and_what_is_free(platform: Platform) -> None:
    await platform.world.nodes("local", {"cpu": 4000, "memory": 8 << 30, "nvidia.com/gpu": 2000})
    listed = await platform.ask(platform.cast.member, "GET", "/clusters")
    (cluster,) = listed.json()["items"]
    assert (cluster["id"], cluster["state"], cluster["nodes"]) == ("local", "online", 1)
    rooms = {one["resource"]: one for one in cluster["capacity"]}
    assert rooms["memory"]["free"] == "8Gi"
    assert rooms["nvidia.com/gpu"]["largest"] == "2"
    one = (await platform.ask(platform.cast.member, "GET", "/clusters/local")).json()
    assert [(n["name"], n["capacity"]["cpu"]) for n in one["node_list"]] == [("local-0", "4")]


async def test_a_cluster_that_there_is_not_is_not_found(platform: Platform) -> None:
    for method, path in (("GET", "/x"), ("POST", "/x/disable"), ("POST", "/x/enable")):
        answer = await platform.ask(platform.cast.root, method, f"/clusters{path}")
        assert answer.status_code == 404


async def test_a_silent_cluster_is_offline_and_one_that_never_called_says_so(
    platform: Platform,
) -> None:
    async with platform.world.ctx.db.transaction() as tx:
        await tx.execute("UPDATE heartbeats SET seen_at = now() - interval '2 minutes'")
    offline = (await platform.ask(platform.cast.member, "GET", "/clusters/local")).json()
    assert offline["state"] == "offline"
    assert 115 < offline["silent_s"] < 140
    async with platform.world.ctx.db.transaction() as tx:
        await tx.execute("DELETE FROM heartbeats")
    never = (await platform.ask(platform.cast.member, "GET", "/clusters/local")).json()
    assert (never["state"], never["seen_at"]) == ("never", None)


async def test_a_disabled_cluster_gets_no_work_until_it_is_enabled(platform: Platform) -> None:
    root = platform.cast.root
    for _ in range(2):  # safe to repeat
        gone = await platform.ask(root, "POST", "/clusters/local/disable")
        assert (gone.status_code, gone.json()["state"]) == (200, "disabled")
    run = await platform.submit(ONE)
    assert (await platform.world.place()).placed == 0
    why = (await platform.ask(root, "GET", f"/runs/{run}/why")).json()["items"][0]
    assert [(r["code"], r["cluster"]) for r in why["reasons"]] == [("disabled", "local")]
    back = await platform.ask(root, "POST", "/clusters/local/enable")
    assert back.json()["state"] == "online"
    assert (await platform.world.place()).placed == 1
    async with platform.world.ctx.db.reading() as tx:
        rows = await tx.fetch(
            "SELECT action, actor FROM audit WHERE action IN"
            " ('cluster.disabled', 'cluster.enabled') ORDER BY seq"
        )
    assert [(r["action"], r["actor"]) for r in rows] == [
        ("cluster.disabled", "user:root@example.org"),
        ("cluster.enabled", "user:root@example.org"),
    ]
