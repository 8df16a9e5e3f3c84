"""The size of a function over HTTP: what holds, people's word over it, and its end."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pilotlight_core.model.calendar.warm_windows import Warm
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.scaling.scale_record import BoundOverride, ScaleRecord
from pilotlight_core.model.tenancy import LimitsRecord
from tests.gateway.world import World, function

PATH = "/v1/functions/shop.hello/autoscaler"
HOUR_S = 3_600.0


def values(answer: Any) -> dict[str, float]:
    """The bounds of an answer, by name."""
    names = ("min_containers", "max_containers", "buffer_containers", "scaledown_window", "zero_window")
    return {name: answer.json()[name]["value"] for name in names}


async def test_what_was_deployed_holds_until_people_say_otherwise(world: World) -> None:
    """Each bound says whose word it is."""
    world.deploy(function(min_containers=1, scaledown_window=30.0))
    async with world.client() as client:
        before = await client.get(PATH)
        changed = await client.patch(PATH, json={"min_containers": 2, "max_containers": 20, "ends_in_s": HOUR_S})
        after = await client.get(PATH)

    deployed = {"min_containers": 1, "max_containers": 10, "buffer_containers": 0, "scaledown_window": 30.0}
    deployed["zero_window"] = 30.0
    assert values(before) == deployed
    assert before.json()["min_containers"]["because"] == "as deployed"
    assert before.json()["changes_at"] is None
    assert values(changed) == values(after) == deployed | {"min_containers": 2, "max_containers": 20}
    bound = after.json()["min_containers"]
    assert bound["deployed"] == 1
    assert bound["ends_at"] - time.time() == pytest.approx(HOUR_S, abs=60)
    assert "by 'pilotlight scale' with the key " in bound["because"]
    assert after.json()["changes_at"] == bound["ends_at"]
    assert (after.json()["function"], after.json()["version"]) == ("shop.hello", "shop.hello@v1")


async def test_what_is_missing_stays_and_null_is_as_deployed(world: World) -> None:
    """So two people's words about different bounds do not undo each other."""
    world.deploy(function())
    async with world.client() as client:
        await client.patch(PATH, json={"min_containers": 2, "ends_in_s": HOUR_S})
        both = await client.patch(PATH, json={"buffer_containers": 3})
        floor = await client.patch(PATH, json={"buffer_containers": None})
        none = await client.patch(PATH, json={"min_containers": None})

    assert (values(both)["min_containers"], values(both)["buffer_containers"]) == (2, 3)
    assert both.json()["buffer_containers"]["ends_at"] is None
    assert (values(floor)["min_containers"], values(floor)["buffer_containers"]) == (2, 0)
    assert values(none)["min_containers"] == 0
    assert not world.registry.scale_records


async def test_a_reset_ends_all_of_it(world: World) -> None:
    """Also where nothing was said."""
    world.deploy(function())
    async with world.client() as client:
        await client.patch(PATH, json={"min_containers": 2})
        gone = await client.delete(PATH)
        again = await client.delete(PATH)

    assert (gone.status_code, again.status_code) == (200, 200)
    assert values(gone)["min_containers"] == 0
    assert not world.registry.scale_records


async def test_what_has_ended_is_dropped_by_the_next_word(world: World) -> None:
    """It holds no longer in any case."""
    world.deploy(function())
    ended = BoundOverride(value=7, at=1.0, ends_at=2.0)
    world.registry.scale_records["acme", "shop", "hello"] = ScaleRecord(
        tenant="acme", app="shop", function="hello", min_containers=ended
    )
    async with world.client() as client:
        assert values(await client.get(PATH))["min_containers"] == 0
        await client.patch(PATH, json={"max_containers": 3})

    record = world.registry.scale_records["acme", "shop", "hello"]
    assert (record.min_containers, record.max_containers is not None) == (None, True)


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        ({}, "min_containers", "Name what to change: min_containers, max_containers"),
        ({"ends_in_s": 5}, "min_containers", "Name what to change"),
        ({"min_containers": -1}, "min_containers", "expected a whole number >= 0"),
        ({"min_containers": 1.5}, "min_containers", "expected a whole number"),
        ({"max_containers": 0}, "max_containers", "expected a whole number >= 1"),
        ({"scaledown_window": 86_401}, "scaledown_window", "<= 86400"),
        ({"min_containers": 11}, "min_containers", "min_containers=11 is out of range: expected at most max_"),
        ({"min_containers": 1, "ends_at": 5}, "ends_at", "ends_at: 5 is not ahead: expected a unix second after"),
        ({"min_containers": 1, "ends_at": 1e12}, "ends_at", "within ten years"),
        ({"min_containers": 1, "ends_at": 5, "ends_in_s": 5}, "ends_in_s", "expected one of both"),
        ({"min_containers": 1, "ends_in_s": 0}, "ends_in_s", "> 0"),
        ({"replicas": 3}, "replicas", "replicas"),
    ],
)
async def test_what_cannot_be_is_refused(world: World, body: dict[str, Any], field: str, says: str) -> None:
    """By its name; nothing is changed."""
    world.deploy(function())
    async with world.client() as client:
        refused = await client.patch(PATH, json=body)

    assert refused.status_code == 422, refused.text
    assert refused.json()["field"] == field
    assert says in refused.json()["detail"]
    assert not world.registry.scale_records


async def test_a_word_is_held_to_the_tenant_s_limits(world: World) -> None:
    """Of containers, and of those kept without calls; less than there is is never refused."""
    world.deploy(function(max_containers=100), function("bye", min_containers=2))
    limits = Limits(containers=8, floor_containers=5)
    world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=limits)
    async with world.client() as client:
        many = await client.patch(PATH, json={"min_containers": 9})
        kept = await client.patch(PATH, json={"min_containers": 4})
        fits = await client.patch(PATH, json={"min_containers": 3})
        world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(floor_containers=1))
        less = await client.patch(PATH, json={"min_containers": 2})

    assert (many.status_code, many.json()["limits"][0]["limit"]) == (422, "containers")
    assert (kept.status_code, kept.json()["limits"][0]["limit"]) == (422, "floor_containers")
    assert "would keep 6 containers, 2 of them of other functions" in kept.json()["detail"]
    assert (fits.status_code, less.status_code) == (200, 200)


async def test_records_have_a_bound(world: World) -> None:
    """As all that a tenant has deployed."""
    world.deploy(function())
    world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(record_bytes=1_000))
    async with world.client() as client:
        refused = await client.patch(PATH, json={"min_containers": 1})
    assert (refused.status_code, refused.json()["code"]) == (403, "quota_exceeded")


async def test_warm_windows_are_shown(world: World) -> None:
    """With what they do now; a ceiling that people say goes over them."""
    world.deploy(function(warm=(Warm("00:00-24:00", 3, "Europe/Berlin"),)))
    async with world.client() as client:
        shown = await client.get(PATH)
        cut = await client.patch(PATH, json={"max_containers": 1})

    assert values(shown)["min_containers"] == 3
    assert shown.json()["min_containers"]["because"] == "warm window 00:00-24:00 Europe/Berlin"
    assert shown.json()["warm"] == [
        {"when": "00:00-24:00", "tz": "Europe/Berlin", "containers": 3, "open": True, "changes_at": None}
    ]
    assert values(cut)["min_containers"] == 1


async def test_only_its_owner_says_so_with_a_key_that_may(world: World) -> None:
    """Who may read may see it; a share does not include it; a version has no size of its own."""
    world.deploy(function())
    friend, reader, caller = (
        world.add_key("friend", "admin"), world.add_key("acme", "read"), world.add_key("acme", "invoke"),
    )  # fmt: skip
    theirs = "/v1/functions/acme:shop.hello/autoscaler"
    async with world.client() as owner, world.client(str(friend)) as other:
        await owner.put("/v1/apps/shop/shares/friend")
        strange = await other.patch(theirs, json={"min_containers": 1})
        pinned = await owner.get("/v1/functions/shop.hello@v1/autoscaler")
        unknown = await owner.get("/v1/functions/shop.nothing/autoscaler")
    async with world.client(str(reader)) as readers, world.client(str(caller)) as callers:
        seen, denied = await readers.get(PATH), await readers.patch(PATH, json={"min_containers": 1})
        blind = await callers.get(PATH)

    assert (strange.status_code, unknown.status_code) == (404, 404)
    assert (pinned.status_code, pinned.json()["field"]) == (422, "ref")
    assert (seen.status_code, denied.status_code, blind.status_code) == (200, 403, 403)
