"""Usage over HTTP: a tenant's own in every form, and everybody's for the operator."""

from __future__ import annotations

import json

import pytest

from pilotlight_core.model.messages.usage import LeaseState
from pilotlight_core.model.money.budgets import HomeTranches, ReachedThreshold
from tests.gateway.ledger.metering import MIDNIGHT, SECOND, busy, delivered, event, tagged
from tests.gateway.world import World, function

DAYS = "from=2026-09-01&to=2026-10-01"


async def test_usage_is_told_as_json_and_csv(world: World) -> None:
    """The tenant's own lines and their total, grouped as asked."""
    rivals = event(2, SECOND, 2 * SECOND, tenant="rival")
    world.ledger.fold("USAGE", 1, delivered([busy(1, 0, ("a", SECOND, "ok")), rivals]))
    world.ledger.fold("USAGE", 2, tagged({"ver_1": {"team": "search"}}))
    query = "/v1/usage?from=2026-09-01&to=2026-10-01"
    async with world.client() as client:
        report = (await client.get(query)).json()
        assert [(line["day"], line["calls"], line["ns"]) for line in report["lines"]] == [("2026-09-22", 1, SECOND)]
        assert report["total"]["cost"] == report["lines"][0]["cost"]
        assert (await client.get(f"{query}&group=app")).json()["lines"][0]["day"] == ""
        by_format = await client.get(f"{query}&format=csv")
        by_team = (await client.get(f"{query}&group=tag:team,app")).json()["lines"]
        assert [(line["app"], line["tags"]) for line in by_team] == [("shop", {"team": "search"})]
        with_tags = await client.get(f"{query}&group=tag:team&format=csv")
        assert [row.split(",")[-1] for row in with_tags.text.splitlines()] == ["tag:team", "search"]
        by_header = await client.get(query, headers={"accept": "text/csv"})
        assert by_format.text == by_header.text
        assert by_format.headers["content-type"].startswith("text/csv")
        assert (await client.get("/v1/usage")).status_code == 200


async def test_thresholds_of_budgets_are_told_beside_it(world: World) -> None:
    """Those that were reached in these days: a tenant's own, and everybody's to the operator."""
    records = {
        tenant: HomeTranches(tenant=tenant, reached=(
            ReachedThreshold(budget="month", percent=80, at=MIDNIGHT, begins=0, amount=5 * 10**9),
            ReachedThreshold(budget="month", percent=100, at=MIDNIGHT + 90 * 86_400, begins=0, amount=5 * 10**9),
        ))
        for tenant in ("acme", "rival")
    }  # fmt: skip

    async def of(tenant: str) -> HomeTranches | None:
        return records.get(tenant)

    async def everybody() -> list[HomeTranches]:
        return list(records.values())

    world.services.tranches, world.services.all_tranches = of, everybody
    async with world.client() as client:
        own = (await client.get(f"/v1/usage?{DAYS}")).json()
        page = (await client.get(f"/v1/usage?{DAYS}&format=html")).text
        none = (await client.get("/v1/usage?from=2026-08-01&to=2026-09-01")).json()
    async with world.client(world.operator) as client:
        told = (await client.get(f"/v1/usage?{DAYS}&all=true")).json()

    assert own["thresholds"] == [{
        "at": "2026-09-22T00:00:00Z", "tenant": "acme", "budget": "month", "percent": 80, "usd": "5",
        "function": None, "key": None,
    }]  # fmt: skip
    assert "Budgets that were reached" in page
    assert "thresholds" not in none
    assert [line["tenant"] for line in told["thresholds"]] == ["acme", "rival"]


async def test_usage_names_versions_as_people_do(world: World) -> None:
    """By number where the registry has the version, else by its id."""
    (version,) = world.deploy(function())
    lines = [event(1, 0, 5, version=version.id), event(2, 5, 9, version="ver_gone")]
    world.ledger.fold("USAGE", 1, delivered(lines))
    async with world.client() as client:
        report = (await client.get("/v1/usage?from=2026-09-01&to=2026-10-01")).json()

    assert {line["version"] for line in report["lines"]} == {"shop.hello@v1", "ver_gone"}


@pytest.mark.parametrize(
    ("query", "field"),
    [("from=yesterday", "from"), ("to=2026-13-01", "to"), ("from=2026-02-01&to=2026-02-01", "to"),
     ("group=tenant", "group"), ("group=tag:a.b", "group"), ("format=xml", "format"),
     ("tenant=a.b", "tenant"), ("all=perhaps", "all")],
)  # fmt: skip
async def test_a_wrong_usage_query_names_its_field(world: World, query: str, field: str) -> None:
    """422."""
    async with world.client() as client:
        answer = await client.get(f"/v1/usage?{query}")

    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_usage_is_grouped_by_what_is_asked_for(world: World) -> None:
    """By hour, key, kind of GPU and purchase; each has its field, and CSV its column."""
    call = busy(1, 0, ("a", SECOND, "ok"), price="h100", purchase="spot")
    world.ledger.fold("USAGE", 1, delivered([call]))
    query = f"/v1/usage?{DAYS}&group=hour,gpu,purchase,key"
    async with world.client() as client:
        (line,) = (await client.get(query)).json()["lines"]
        csv = (await client.get(f"{query}&format=csv")).text.splitlines()

    assert (line["hour"], line["gpu"], line["purchase"], line["key"]) == ("2026-09-22T12", "H100", "spot", "")
    assert "tenant" not in line
    assert csv[0].endswith(",currency,hour,key,gpu,purchase")


async def test_the_operator_sees_all_tenants(world: World) -> None:
    """Told apart, with what nobody pays for; one of them alone; a tenant sees itself only."""
    free = event(3, SECOND, 2 * SECOND, LeaseState.FREE, tenant="", app="", function="", version="", container="")
    lines = [busy(1, 0, ("a", SECOND, "ok")), event(2, 0, SECOND, tenant="rival"), free]
    world.ledger.fold("USAGE", 1, delivered(lines))
    async with world.client(world.operator) as operator, world.client() as client:
        everybody = (await operator.get(f"/v1/usage?{DAYS}&all=true&group=tenant")).json()["lines"]
        rival = (await operator.get(f"/v1/usage?{DAYS}&tenant=rival")).json()
        own = (await client.get(f"/v1/usage?{DAYS}&tenant=acme")).json()
        fleet = (await operator.get(f"/v1/usage/fleet?{DAYS}&cost=cpu:0.01")).json()
        refused = [
            (await client.get(path)).status_code
            for path in (f"/v1/usage?{DAYS}&all=true", f"/v1/usage?{DAYS}&tenant=rival", "/v1/usage/fleet")
        ]

    assert [line["tenant"] for line in everybody] == ["", "acme", "rival"]
    assert (rival["total"]["ns"], own["total"]["ns"]) == (SECOND, SECOND)
    assert [one["tenant"] for one in fleet["tenants"]] == ["acme", "rival"]
    assert [one["cause"] for one in fleet["operator"]] == ["unused"]
    assert [(one["device"], one["cost"] is None) for one in fleet["devices"]] == [("d0", False)]
    assert refused == [403, 403, 403]


async def test_usage_has_forms_for_people_and_for_others(world: World) -> None:
    """A page, FOCUS and Parquet, by parameter or by header; of a form that is missing here the reason is told."""
    world.ledger.fold("USAGE", 1, delivered([busy(1, 0, ("a", SECOND, "ok"))]))
    async with world.client() as client:
        page = await client.get(f"/v1/usage?{DAYS}&format=html")
        asked = await client.get(f"/v1/usage?{DAYS}", headers={"accept": "text/html,*/*"})
        focus = await client.get(f"/v1/usage?{DAYS}&format=focus")
        parquet = await client.get(f"/v1/usage?{DAYS}&format=parquet")

    assert page.headers["content-type"].startswith("text/html")
    assert page.text.startswith("<!doctype html>")
    assert asked.headers["content-type"].startswith("text/html")
    assert focus.headers["content-type"].startswith("text/csv")
    assert "BilledCost" in focus.text
    assert parquet.content[:4] == b"PAR1" or "pilotlight[parquet]" in parquet.json()["detail"]


async def test_only_closed_days_are_metering_events(world: World) -> None:
    """What was told once never changes."""
    world.ledger.fold("USAGE", 1, delivered([busy(1, 0, ("a", SECOND, "ok"))]))
    async with world.client() as client:
        before = await client.get(f"/v1/usage/events?{DAYS}")
        world.ledger.close_days("2026-10-01", 0.0)
        after = await client.get(f"/v1/usage/events?{DAYS}")

    assert before.json() == []
    assert after.headers["content-type"].startswith("application/cloudevents-batch+json")
    (told,) = json.loads(after.content)
    assert (told["subject"], told["time"], told["data"]["ns"]) == ("acme", "2026-09-22T12:00:00Z", SECOND)


async def test_a_forecast_is_of_this_month(world: World) -> None:
    """Without usage nothing is expected."""
    async with world.client() as client:
        found = (await client.get("/v1/usage/forecast")).json()

    assert (found["expected"], found["method"]) == ("0.000000000000", "")
