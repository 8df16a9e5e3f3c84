"""The bounds of a function at an instant: people's word, then warm windows, then the specification."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.calendar.warm_windows import Warm
from pilotlight_core.model.scaling.scale_bounds import AS_DEPLOYED, bounds_of, most_kept, time_text
from pilotlight_core.model.scaling.scale_record import BoundOverride, ScaleRecord
from tests.builders.specs import function_spec
from tests.example_counts import examples

WORKDAY = Warm("Mon-Fri 08:00-18:00", containers=2, tz="Europe/Berlin")
"""In winter from 7 to 17 UTC."""


def unix(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def said(**values: Any) -> ScaleRecord:
    """What people said: each value, or (value, the unix second at which it ends)."""
    pairs = {field: value if isinstance(value, tuple) else (value, 0.0) for field, value in values.items()}
    overrides = {
        field: BoundOverride(value=value, at=0.0, by="key_1", ends_at=ends) for field, (value, ends) in pairs.items()
    }
    return ScaleRecord(tenant="acme", app="hello", function="greet", **overrides)


def test_without_a_word_the_specification_holds() -> None:
    """For ever."""
    bounds = bounds_of(function_spec(min_containers=1, buffer_containers=2, scaledown_window=7.0), None, 0.0)
    assert (bounds.least, bounds.most, bounds.buffer, bounds.window_s, bounds.steady) == (1, 10, 2, 7.0, 1)
    assert set(bounds.because.values()) == {AS_DEPLOYED}
    assert bounds.changes_at == math.inf


def test_people_s_word_holds_until_its_end() -> None:
    """And its sentence says whose it is."""
    end = unix("2026-11-24 18:00")
    record = said(min_containers=(2, end), max_containers=20, scaledown_window=5)
    bounds = bounds_of(function_spec(), record, end - 1)
    assert (bounds.least, bounds.most, bounds.window_s, bounds.changes_at) == (2, 20, 5.0, end)
    assert {field: str(reason) for field, reason in bounds.because.items()} == {
        "min_containers": "by 'pilotlight scale' with the key key_1, until 2026-11-24 18:00 UTC",
        "max_containers": "by 'pilotlight scale' with the key key_1",
        "buffer_containers": "as deployed",
        "scaledown_window": "by 'pilotlight scale' with the key key_1",
        "zero_window": "as deployed",
        "forecast": "as deployed",
    }
    after = bounds_of(function_spec(), record, end)
    assert (after.least, after.most, after.changes_at) == (0, 20, math.inf)


def test_the_last_container_has_the_window_of_any_unless_one_of_its_own_is_said() -> None:
    """By the specification, or by people."""
    spec = function_spec(scaledown_window=30.0)
    own = function_spec(scaledown_window=30.0, zero_window=300.0)
    found = [bounds_of(each, None, 0.0).zero_window_s for each in (spec, own)]
    assert found == [30.0, 300.0]
    assert bounds_of(spec, said(scaledown_window=90), 0.0).zero_window_s == 90.0
    assert bounds_of(own, said(zero_window=600), 0.0).zero_window_s == 600.0


def test_a_past_foretells_unless_the_specification_or_people_say_otherwise() -> None:
    """People's word goes first, both ways."""
    for deployed, word, expected in [
        (True, None, True), (False, None, False), (True, 0, False), (False, 1, True),
    ]:  # fmt: skip
        record = None if word is None else said(forecast=word)
        spec = function_spec() if deployed else function_spec(forecast=False)
        assert bounds_of(spec, record, 0.0).forecast is expected, (deployed, word)


def test_a_warm_window_raises_the_floor_while_it_is_open() -> None:
    """Beyond what is there at any time."""
    spec = function_spec(min_containers=1, warm=(WORKDAY, Warm("Tue 09:00-10:00", 5)))
    opens, closes = unix("2026-11-24 07:00"), unix("2026-11-24 17:00")
    before, during, after = (bounds_of(spec, None, at) for at in (opens - 1, opens, closes))
    assert (before.least, before.changes_at) == (1, opens)
    assert (during.least, during.steady, during.changes_at) == (2, 1, unix("2026-11-24 09:00"))
    because = str(during.because["min_containers"])
    assert because == "warm window Mon-Fri 08:00-18:00 Europe/Berlin, until 2026-11-24 17:00 UTC"
    assert bounds_of(spec, None, unix("2026-11-24 09:30")).least == 5
    assert (after.least, after.because["min_containers"]) == (1, AS_DEPLOYED)


def test_its_containers_start_as_long_before_as_a_start_takes() -> None:
    """So that they are ready when it opens."""
    spec, opens = function_spec(warm=(WORKDAY,)), unix("2026-11-24 07:00")
    assert bounds_of(spec, None, opens - 91, lead_s=90.0).least == 0
    assert bounds_of(spec, None, opens - 91, lead_s=90.0).changes_at == opens - 90
    early = bounds_of(spec, None, opens - 90, lead_s=90.0)
    assert (early.least, early.changes_at) == (2, opens)
    assert early.because["min_containers"].ends_at == unix("2026-11-24 17:00")


def test_people_s_word_goes_before_a_warm_window() -> None:
    """Also where it says less."""
    spec, during = function_spec(warm=(WORKDAY,)), unix("2026-11-24 09:00")
    assert bounds_of(spec, said(min_containers=0), during).least == 0
    ends = bounds_of(spec, said(min_containers=(0, during + 60)), during)
    assert (ends.least, ends.changes_at) == (0, during + 60)
    assert bounds_of(spec, said(max_containers=5), during).least == 2


def test_a_floor_never_goes_above_the_ceiling() -> None:
    """And says so."""
    bounds = bounds_of(function_spec(warm=(WORKDAY,)), said(max_containers=1), unix("2026-11-24 09:00"))
    assert (bounds.least, bounds.most) == (1, 1)
    assert bounds.because["min_containers"].word.endswith("Europe/Berlin: of its 2 max_containers allows 1")


def test_what_may_be_kept_counts_windows_and_what_comes_after_an_end() -> None:
    """A limit of floors is held against it."""
    spec = function_spec(min_containers=1, warm=(WORKDAY,))
    assert most_kept(spec, None, 0.0) == 2
    assert most_kept(spec, said(min_containers=(5, 10.0)), 9.0) == 5
    assert most_kept(spec, said(min_containers=(0, 10.0)), 9.0) == 2
    assert most_kept(spec, said(min_containers=(5, 10.0)), 10.0) == 2
    assert most_kept(spec, said(min_containers=0), 0.0) == 0


def test_a_window_of_a_zone_that_this_host_lacks_is_never_open() -> None:
    """Whoever deployed it had another list of zones: the controller goes on."""
    assert bounds_of(function_spec(warm=(Warm("00:00-24:00", 3, "Moon/Tycho"),)), None, 0.0).least == 0


def test_times_are_said_to_the_second_only_where_they_have_seconds() -> None:
    assert time_text(unix("2026-11-24 18:00")) == "2026-11-24 18:00 UTC"
    assert time_text(unix("2026-11-24 18:00:05")) == "2026-11-24 18:00:05 UTC"


counts = st.integers(0, 12)
words = st.none() | st.tuples(counts, st.sampled_from((0.0, 3e5, 1.2e6)))


@examples(100, deadline=None)
@given(
    least=counts, extra=counts, warm=st.lists(st.integers(1, 12), max_size=3), floor=words, ceiling=words,
    at=st.integers(0, 1_500_000), lead=st.sampled_from((0.0, 120.0)),
)  # fmt: skip
def test_bounds_hold_until_they_change(
    least: int,
    extra: int,
    warm: list[int],
    floor: tuple[int, float] | None,
    ceiling: tuple[int, float] | None,
    at: int,
    lead: float,
) -> None:
    """The floor is never above the ceiling, nothing changes before `changes_at`, and the same input says the same."""
    windows = tuple(Warm(f"Mon,Thu 0{index}:00-1{index}:30", count) for index, count in enumerate(warm))
    spec = function_spec(min_containers=least, max_containers=least + extra + 1, warm=windows)
    words = {"min_containers": floor, "max_containers": (ceiling[0] + 1, ceiling[1]) if ceiling else None}
    record = said(**{field: word for field, word in words.items() if word is not None})

    bounds = bounds_of(spec, record, at, lead_s=lead)

    assert 0 <= bounds.steady <= bounds.least <= bounds.most
    assert bounds == bounds_of(spec, record, at, lead_s=lead)
    assert bounds.changes_at > at
    last = min(bounds.changes_at - 1, at + 30 * 86_400)
    for later in (at + (last - at) * part for part in (0.1, 0.5, 1.0)):
        then = bounds_of(spec, record, later, lead_s=lead)
        assert (then.least, then.most, then.steady) == (bounds.least, bounds.most, bounds.steady)
