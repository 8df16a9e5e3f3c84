"""Rollouts over HTTP: started, shown, and told what to do, by whoever deploys."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from pilotlight_core.model.rollouts.rollout_moves import ended
from pilotlight_core.model.rollouts.rollout_record import RolloutRecord, RolloutState
from tests.gateway.http.endpoints.rollouts.test_rollbacks import deploy
from tests.gateway.world import World

PATH = "/v1/apps/shop/rollout"
QUICK = {"steps": [5, 50, 100], "every_s": 1, "pairs": 0}


async def with_two(client: httpx.AsyncClient) -> None:
    await deploy(client, b"one")
    await deploy(client, b"two", no_traffic=True)


async def test_a_rollout_is_started_shown_and_promoted(world: World) -> None:
    """Its canary is the newest deploy without traffic; what it will see is said at its start."""
    async with world.client() as client:
        await with_two(client)
        begun = await client.post(PATH, json=QUICK)
        shown = (await client.get(PATH)).json()
        running = await client.post(PATH, json=QUICK)
        promoted = await client.post(f"{PATH}/promote", json={"reason": "seen by hand"})
        listed = (await client.get("/v1/apps/shop/rollouts")).json()["rollouts"]
        called = await client.post("/v1/functions/shop.hello/calls", json={"input": {"name": "x"}})

    answer = begun.json()
    assert (begun.status_code, answer["rollout"]["state"], answer["rollout"]["steps"]) == (201, "planned", [5, 50, 100])
    assert answer["visible"]
    assert answer["rollout"]["functions"] == {"hello": {"canary": "shop.hello@v2", "control": "shop.hello@v1"}}
    assert (shown["id"], shown["verdict"], shown["evidence"]) == (answer["rollout"]["id"], "undecided", 1.0)
    assert (running.status_code, running.json()["code"]) == (409, "rollout_running")
    assert (promoted.json()["state"], listed[0]["state"]) == ("promoted", "promoted")
    assert "seen by hand" in promoted.json()["reason"]
    assert called.json()["version"] == "shop.hello@v2"
    audited = [(one.operation, one.told) for one in world.audit.records]
    assert ("sendRolloutWord", {"reason": "seen by hand"}) in audited
    news = world.registry.rollout_records["acme", "shop"].untold
    assert [one.kind for one in news] == ["rollout.started", "rollout.promoted"]


async def test_a_version_that_is_registered_already_is_rolled_out_once_it_is_deployed_without_traffic_again(
    world: World,
) -> None:
    """By the line that its deploy names, and by none. One that was rolled back needs `retry`."""
    async with world.client() as client:
        await with_two(client)
        await deploy(client, b"three", no_traffic=True)
        again = await deploy(client, b"two", no_traffic=True)
        record = world.registry.apps["acme", "shop"]
        second = again["functions"][0]["version_id"]
        world.registry.rollout_records["acme", "shop"] = RolloutRecord(
            tenant="acme", app="shop", revision=1, withdrawn={second: "rol_0"}
        )
        refused = await client.post(PATH, json=QUICK | {"canary": str(again["revision"])})
        begun = await client.post(PATH, json=QUICK | {"retry": True})

    assert (again["functions"][0]["changed"], again["revision"]) == (False, record.revision)
    assert (refused.status_code, refused.json()["code"]) == (409, "version_withdrawn")
    assert begun.json()["rollout"]["functions"]["hello"]["canary"] == "shop.hello@v2"


async def test_an_abort_wins_also_while_it_is_paused_and_leaves_no_mark(world: World) -> None:
    """The same version may be tried again."""
    async with world.client() as client:
        await with_two(client)
        await client.post(PATH, json=QUICK)
        paused = (await client.post(f"{PATH}/pause")).json()
        frozen = (await client.post(f"{PATH}/freeze")).json()
        resumed = (await client.post(f"{PATH}/resume")).json()
        await client.post(f"{PATH}/pause")
        aborted = (await client.post(f"{PATH}/abort", json={"reason": "wrong weights"})).json()
        late = await client.post(f"{PATH}/promote")

    assert (bool(paused["paused_by"]), frozen["frozen"]) == (True, True)
    assert (resumed["paused_by"], resumed["frozen"]) == ("", False)
    assert (aborted["state"], "wrong weights" in aborted["reason"]) == ("rolling_back", True)
    assert (late.status_code, late.json()["code"]) == (409, "conflict")
    assert world.registry.rollout_records["acme", "shop"].withdrawn == {}


@pytest.mark.parametrize("word", ["pause", "resume", "promote", "abort", "freeze"])
async def test_a_word_for_another_rollout_than_the_last_changes_nothing(world: World, word: str) -> None:
    """Whoever looks at a page of before acts on what they have seen, or on nothing."""
    async with world.client() as client:
        await with_two(client)
        before = (await client.post(PATH, json=QUICK)).json()["rollout"]["id"]
        await client.post(f"{PATH}/abort", json={"rollout": before})
        record = world.registry.rollout_records["acme", "shop"]
        assert record.rollout is not None
        over = replace(record.rollout, state=RolloutState.ROLLED_BACK)
        world.registry.rollout_records["acme", "shop"] = replace(record, rollout=over)
        now = (await client.post(PATH, json=QUICK)).json()["rollout"]["id"]
        late = await client.post(f"{PATH}/{word}", json={"rollout": before})
        shown = (await client.get(PATH)).json()
        meant = await client.post(f"{PATH}/{word}", json={"rollout": now})

    assert (late.status_code, late.json()["code"], late.json()["field"]) == (409, "conflict", "rollout")
    assert (shown["id"], shown["state"], shown["paused_by"], shown["frozen"]) == (now, "planned", "", False)
    assert meant.status_code == 200


async def test_a_promotion_that_the_keeper_sees_first_is_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes the end as soon as the new versions are in service, which may be before whoever promotes does."""
    change = world.registry.change_rollout

    async def after_the_keeper(tenant: str, app: str, changed: Any) -> Any:
        await change(tenant, app, lambda now: now and ended(now, 7.0, RolloutState.PROMOTED, "promoted"))
        return await change(tenant, app, changed)

    async with world.client() as client:
        await with_two(client)
        await client.post(PATH, json=QUICK)
        monkeypatch.setattr(world.registry, "change_rollout", after_the_keeper)
        promoted = await client.post(f"{PATH}/promote")
    assert (promoted.status_code, promoted.json()["state"]) == (200, "promoted")


async def test_a_version_that_was_rolled_back_is_refused_until_retry(world: World) -> None:
    async with world.client() as client:
        await with_two(client)
        await client.post(PATH, json=QUICK)
        record = world.registry.rollout_records["acme", "shop"]
        assert record.rollout is not None
        world.registry.rollout_records["acme", "shop"] = replace(
            record,
            rollout=replace(record.rollout, state=RolloutState.ROLLED_BACK),
            withdrawn=dict.fromkeys(record.rollout.canary.values(), record.rollout.id),
        )
        refused = await client.post(PATH, json=QUICK)
        again = await client.post(PATH, json=QUICK | {"retry": True})

    assert (refused.status_code, refused.json()["code"]) == (409, "version_withdrawn")
    assert again.json()["rollout"]["number"] == 2


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"steps": [50, 5]}, "steps"),
        ({"weights": {"nonsense": 1}}, "weights"),
        ({"guards": [{"name": "cost", "kind": "amount", "field": "a"}]}, "guards"),
        ({"gate": "http://10.0.0.1/"}, "gate"),
        ({"canary": "v1"}, "canary"),
    ],
)
async def test_what_is_wrong_is_named(world: World, asked: dict[str, Any], field: str) -> None:
    async with world.client() as client:
        await with_two(client)
        refused = await client.post(PATH, json=QUICK | asked)

    assert (refused.status_code, refused.json()["field"]) == (422, field)


async def test_there_may_be_nothing(world: World) -> None:
    """No app, no rollout, nothing to bring, or no such word."""
    async with world.client() as client:
        absent = await client.get("/v1/apps/nada/rollout")
        await deploy(client, b"one")
        never = await client.get(PATH)
        none = await client.post(PATH, json=QUICK)
        unsaid = await client.post(f"{PATH}/pause")
        unknown = await client.post(f"{PATH}/dance")
        revision = await client.post(PATH, json=QUICK | {"canary": "99"})

    codes = [one.status_code for one in (absent, never, none, unsaid, unknown, revision)]
    assert codes == [404] * 6


async def test_only_who_deploys_tells_rollouts_what_to_do(world: World) -> None:
    async with world.client(world.add_key("acme", "read")) as client:
        refused = [await client.post(PATH), await client.post(f"{PATH}/abort")]

    assert [one.status_code for one in refused] == [403, 403]


async def test_those_of_all_apps_are_listed_for_their_tenant(world: World) -> None:
    """Everybody's are shown to operators alone."""
    async with world.client() as client:
        await with_two(client)
        await client.post(PATH, json=QUICK)
        own = (await client.get("/v1/rollouts")).json()
        refused = await client.get("/v1/rollouts", params={"all": "true"})
    async with world.client(world.add_key("rival", "read")) as client:
        theirs = (await client.get("/v1/rollouts")).json()
    async with world.client(str(world.operator)) as client:
        everybodys = (await client.get("/v1/rollouts", params={"all": "true"})).json()

    assert [(one["tenant"], one["app"], one["state"]) for one in own["rollouts"]] == [("acme", "shop", "planned")]
    assert refused.status_code == 403
    assert (theirs, own["left"]) == ({"rollouts": [], "left": 0}, 0)
    assert [one["app"] for one in everybodys["rollouts"]] == ["shop"]
