"""Limits are layered, bounded, and tiers come from files."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.limits import (
    NO_LIMITS,
    Limits,
    Tier,
    effective,
    load_tiers,
)
from pilotlight_core.model.spec import Priority

LAYERS = st.builds(
    Limits,
    requests_per_s=st.none() | st.floats(0.1, 1e6),
    burst=st.none() | st.floats(1, 1e6),
    concurrency=st.none() | st.integers(1, 1000),
    payload_bytes=st.none() | st.integers(1, 1000),
    queue_calls=st.none() | st.integers(1, 1000),
)


@given(LAYERS, LAYERS)
def test_the_nearest_layer_that_says_something_is_heard(near: Limits, far: Limits) -> None:
    """Field by field; only a burst belongs to the rate of its own layer."""
    merged = near.over(far)

    for field in ("requests_per_s", "concurrency", "payload_bytes", "queue_calls"):
        own = getattr(near, field)
        assert getattr(merged, field) == (own if own is not None else getattr(far, field))
    inherited = far.burst if near.requests_per_s is None else None
    assert merged.burst == (near.burst if near.burst is not None else inherited)


@given(LAYERS, LAYERS, LAYERS)
def test_rates_hold_twice_and_bounds_of_a_call_once(tier: Limits, tenant: Limits, function: Limits) -> None:
    """A function's rates are set for it alone; its payload and queue fall back on the tenant's, then the tier's."""
    found = effective(tier, tenant, function)

    assert found.tenant == tenant.over(tier)
    assert (found.function.requests_per_s, found.function.concurrency) == (
        function.requests_per_s,
        function.concurrency,
    )
    for field in ("payload_bytes", "queue_calls"):
        layers = (getattr(layer, field) for layer in (function, tenant, tier))
        assert getattr(found.function, field) == next((value for value in layers if value is not None), None)


def test_a_rate_without_a_burst_has_a_sensible_one() -> None:
    """A second of calls, at least one; ten seconds of cost."""
    assert Limits(requests_per_s=50.0).request_burst == 50.0
    assert Limits(requests_per_s=0.1).request_burst == 1.0
    assert Limits(requests_per_s=5.0, burst=2.0).request_burst == 2.0
    assert Limits(cost_per_s=1000.0).spending_burst == 10_000.0
    assert Limits(cost_per_s=1000.0, cost_burst=5.0).spending_burst == 5.0


@pytest.mark.parametrize("field", Limits.__struct_fields__)
def test_a_limit_out_of_bounds_is_refused_where_it_is_read(field: str) -> None:
    """Negative, enormous and not-a-number values, and zero except where it means none; None is no limit."""
    zero = () if field in ("gpus", "floor_containers", "open_functions", "guarantee", "borrow") else (0,)
    for value in (*zero, -1, 1e300, float("nan"), float("inf"), "1"):
        with pytest.raises(msgspec.ValidationError, match=field):
            msgspec.convert({field: value}, Limits)
    assert msgspec.convert({field: None}, Limits) == NO_LIMITS


@pytest.mark.parametrize(
    "wrong",
    [{"weight": 0}, {"weight": 1e9}, {"reserved_share": 1.1}, {"rank": 5000}, {"limits": {"burst": 0}}],
    ids=str,
)
def test_a_tier_out_of_bounds_is_refused_where_it_is_read(wrong: dict[str, object]) -> None:
    """The field is in the error."""
    with pytest.raises(msgspec.ValidationError, match=next(iter(wrong))):
        msgspec.convert({"name": "gold"} | wrong, Tier)


def test_the_standard_tiers_rise() -> None:
    """free gives way to paid, paid to enterprise, and each is worth more than the one before."""
    free, paid, enterprise = sorted(load_tiers().values(), key=lambda tier: tier.rank)

    assert (free.name, paid.name, enterprise.name) == ("free", "paid", "enterprise")
    assert free.weight < paid.weight < enterprise.weight
    assert free.priority_ceiling is Priority.STANDARD
    assert free.limits.requests_per_s is not None
    for field in ("timeout_s", "containers", "gpus", "floor_containers"):
        assert getattr(free.limits, field) < getattr(paid.limits, field)
    assert enterprise.limits == NO_LIMITS


def test_an_operators_file_replaces_and_adds(tmp_path: Path) -> None:
    """A tier that it names is replaced whole."""
    path = tmp_path / "tiers.toml"
    path.write_text("[tiers.free]\nweight = 2\n[tiers.gold]\nrank = 9\nlimits = {concurrency = 3}\n")

    tiers = load_tiers(path)

    assert tiers["free"] == Tier(name="free", weight=2.0)
    assert tiers["gold"].limits.concurrency == 3
    assert "enterprise" in tiers


@pytest.mark.parametrize(
    "text",
    ["[tiers", "tiers = 3", "[tiers.free]\nweigth = 2", "[tiers.free.limits]\nburst = 'x'", "[tiers.'a.b']\nrank = 1",
     "[tiers.free.limits]\nconcurrency = 0", "".join(f"[tiers.t{n}]\n" for n in range(40))],
)  # fmt: skip
def test_a_wrong_file_is_refused_whole(tmp_path: Path, text: str) -> None:
    """With its name, whatever is wrong in it."""
    path = tmp_path / "tiers.toml"
    path.write_text(text)

    with pytest.raises(BadInput, match=r"tiers\.toml"):
        load_tiers(path)
