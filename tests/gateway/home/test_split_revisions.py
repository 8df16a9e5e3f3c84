"""A home refuses what was chosen by an older record than its own."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pilotlight_core.model.errors import Conflict
from pilotlight_core.model.messages.scheduling import Dropped, Enqueue
from pilotlight_core.model.rollouts.rollout_record import Rollout, RolloutRecord, RolloutState
from pilotlight_gateway.home.split_revisions import HEARD_S, SplitRevisions
from tests.builders.calls import call
from tests.gateway.home.test_homes import Site

ROLLOUT = Rollout(
    id="rol_1", number=1, control={"fn": "ver_1"}, canary={"fn": "ver_new"}, twins={"fn": "ver_twin"}, salt=b"s" * 32,
    state=RolloutState.RAMP, share=500, twin_share=500, since=0.0, started_at=0.0, by="key_1",
)  # fmt: skip


def record(revision: int, **fields: object) -> RolloutRecord:
    return RolloutRecord(tenant="acme", app="app", revision=revision, rollout=replace(ROLLOUT, **fields))


def test_only_what_an_older_revision_has_chosen_is_refused() -> None:
    known = SplitRevisions()
    known.check(call("a", split=0))
    known.changed("rollout.acme.app", record(7))
    for split in (-1, 7, 8):
        known.check(call("a", split=split))
    known.check(call("a", split=0, function="acme:other.fn"))
    for split in (0, 6):
        with pytest.raises(Conflict) as refused:
            known.check(call("a", split=split))
        assert refused.value.wire_code == "stale_split"
    known.changed("rollout.acme.app", None)
    known.changed("app.acme.app", object())
    known.check(call("a", split=0))


def test_what_lost_its_share_is_left() -> None:
    known = SplitRevisions()
    known.changed("rollout.acme.app", record(7))
    assert known.take_left() == set()
    known.changed("rollout.acme.app", record(8, share=0))
    assert known.take_left() == {"ver_new"}
    assert known.take_left() == set()


def test_a_rollback_sends_waiting_calls_back_and_lets_no_late_one_in() -> None:
    """Those that name the version stay, and so do those of other versions."""
    site = Site()
    site.homes.on_record("rollout.acme.app", record(7))
    site.turn(
        Enqueue(call("split", version="ver_new", split=7)),
        Enqueue(call("pinned", version="ver_new")),
        Enqueue(call("old", version="ver_1", split=7)),
    )
    site.homes.on_record("rollout.acme.app", record(8, share=0, twin_share=0))

    late, again = call("late", version="ver_new", split=7), call("again", version="ver_1", split=8)
    said = site.turn(Enqueue(late), Enqueue(again))

    dropped = {item.call_id: item.code for item in said if isinstance(item, Dropped)}
    assert dropped == {"split": "stale_split", "late": "stale_split"}


def test_what_was_called_back_is_barred_for_what_an_older_revision_has_chosen() -> None:
    """A promoted version is not, though its rollout has no share any more."""
    known = SplitRevisions()
    assert not known.is_barred("acme:app.fn", "ver_new", 6)
    known.changed("rollout.acme.app", replace(record(7, share=0), called_back=("ver_old",)))

    assert known.take_left() == {"ver_new", "ver_old"}
    assert known.is_barred("acme:app.fn", "ver_new", 6)
    assert known.is_barred("acme:app.fn", "ver_old", 6)
    assert not known.is_barred("acme:app.fn", "ver_1", 6)
    assert not known.is_barred("acme:app.fn", "ver_new", 7)
    assert not known.is_barred("acme:app.fn", "ver_new", -1)
    known.changed("rollout.acme.app", record(8, share=0, twin_share=0, state=RolloutState.PROMOTED))
    assert known.take_left() == {"ver_twin"}
    known.changed("rollout.acme.app", None)
    assert not known.is_barred("acme:app.fn", "ver_twin", 0)


def test_who_waits_or_has_run_stays_while_shares_rise() -> None:
    """Only a rollback moves it."""
    known = SplitRevisions()
    known.changed("rollout.acme.app", record(7))
    waiting, begun = (
        call("a", split=6, version="ver_new", admitted=True),
        call("b", split=6, version="ver_new", grant_number=1),
    )
    known.check(waiting)
    known.check(begun)
    known.changed("rollout.acme.app", record(8, share=0))
    for one in (waiting, begun):
        with pytest.raises(Conflict):
            known.check(one)
    known.check(call("c", split=6, version="ver_1", admitted=True))


def test_what_an_origin_knows_sooner_counts_for_all() -> None:
    """A user who was sent to the new version by one gateway must not go back by another that is behind, as its home."""
    known = SplitRevisions()
    known.changed("rollout.acme.app", record(7))
    known.check(call("a", split=8), 10.0)
    with pytest.raises(Conflict):
        known.check(call("b", split=7), 10.0 + HEARD_S / 2)
    known.check(call("c", split=7), 10.0 + HEARD_S)
    known.check(call("d", split=9), 20.0)
    known.changed("rollout.acme.app", record(9))
    known.check(call("e", split=9), 20.1)
    known.check(call("f", split=50), 21.0)
    known.changed("rollout.acme.app", None)
    known.changed("rollout.acme.app", record(1))
    known.check(call("g", split=1), 21.1)
