"""Commands about prices: what they send, and what they show."""

from __future__ import annotations

import msgspec

from tests.sdk.cli.shell import cells, invoke, run
from tests.sdk.scripted import ScriptedPlatform, answer, problem

NEW_YEAR = {"from": "2027-01-01T00:00:00Z", "usd_per_hour": "3.25"}
H100 = {
    "price": "h100", "of": "device", "usd_per_hour": "3.9492", "source": "set",
    "past": [{"from": None, "usd_per_hour": "3.9492"}], "to_come": [NEW_YEAR],
}  # fmt: skip
GIB = {
    "price": "memory_gib", "of": "GiB", "usd_per_hour": "0", "source": "standard",
    "past": [{"from": None, "usd_per_hour": "0"}], "to_come": [],
}  # fmt: skip


def test_prices_are_a_table(platform: ScriptedPlatform) -> None:
    """With what is to come."""
    told = {"prices": [H100, GIB], "currency": "USD"}
    platform.will("GET", "/v1/prices", answer(told))

    assert cells(run("price", "list")) == [
        ["price", "USD per hour of", "now", "to come", "from"],
        ["h100", "device", "3.9492", "3.25 from 2027-01-01T00:00:00Z", "set"],
        ["memory_gib", "GiB", "0", "standard"],
    ]
    assert msgspec.json.decode(run("price", "list", "--json")) == told


def test_a_price_is_set_from_a_date_on(platform: ScriptedPlatform) -> None:
    """And what is to come is taken back."""
    platform.will("PUT", "/v1/prices/h100", answer(H100))
    platform.will("DELETE", "/v1/prices/h100/changes", answer(H100 | {"to_come": []}))

    assert run("price", "set", "h100", "3.25", "--from", "2027-01-01") == (
        "h100: 3.9492 USD per hour of a device, then 3.25 from 2027-01-01T00:00:00Z\n"
    )
    assert msgspec.json.decode(run("price", "set", "h100", "3.25", "--json")) == H100
    assert run("price", "drop", "h100") == "h100: 3.9492 USD per hour of a device\n"
    assert [msgspec.json.decode(request.body) for request in platform.asked("/v1/prices/h100")] == [
        {"usd_per_hour": "3.25", "from": "2027-01-01"},
        {"usd_per_hour": "3.25", "from": None},
    ]


def test_what_the_platform_refuses_names_the_field(platform: ScriptedPlatform) -> None:
    """In one sentence."""
    platform.will("PUT", "/v1/prices/h100", problem("bad_input", "from: expected a day (in UTC)."))
    done = invoke("price", "set", "h100", "3", "--from", "soon")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("error: from: expected a day (in UTC).\n")
