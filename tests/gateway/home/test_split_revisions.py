"""A home refuses what was chosen by an older record than its own."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pilotlight_core.model.errors import Conflict
from pilotlight_core.model.messages.call_messages import CallDescriptor, Grant
from pilotlight_core.model.messages.scheduling import Dropped, Enqueue
from pilotlight_core.model.rollouts.rollout_record import Rollout, RolloutRecord, RolloutState
from pilotlight_gateway.cluster.router import OriginItem
from pilotlight_gateway.cluster.shard_ownership import ShardOwner
from pilotlight_gateway.home.split_revisions import HEARD_S, SplitRevisions
from tests.builders.calls import call, credit
from tests.gateway.home.test_homes import SHARD, Site

ROLLOUT = Rollout(
    id="rol_1", number=1, control={"fn": "ver_1"}, canary={"fn": "ver_new"}, twins={"fn": "ver_twin"}, salt=b"s" * 32,
    state=RolloutState.RAMP, share=500, twin_share=500, since=0.0, started_at=0.0, by="key_1",
)  # fmt: skip


def record(revision: int, **fields: object) -> RolloutRecord:
    return RolloutRecord(tenant="acme", app="app", revision=revision, rollout=replace(ROLLOUT, **fields))


def check(known: SplitRevisions, asked: CallDescriptor, at: float = 0.0, waiting: tuple[str, ...] = ()) -> None:
    """As of a home at which these calls wait."""
    known.check(asked, at, waiting.__contains__)


def stale_of(said: list[OriginItem]) -> list[str]:
    return [item.call_id for item in said if isinstance(item, Dropped) and item.code == "stale_split"]


def test_only_what_an_older_revision_has_chosen_is_refused() -> None:
    known = SplitRevisions()
    check(known, call("a", split=0))
    known.changed("rollout.acme.app", record(7))
    for split in (-1, 7, 8):
        check(known, call("a", split=split))
    check(known, call("a", split=0, function="acme:other.fn"))
    for split in (0, 6):
        with pytest.raises(Conflict) as refused:
            check(known, call("a", split=split))
        assert refused.value.wire_code == "stale_split"
    known.changed("rollout.acme.app", None)
    known.changed("app.acme.app", object())
    check(known, call("a", split=0))


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


def test_who_waits_or_was_granted_stays_while_shares_rise() -> None:
    """Only a rollback moves it."""
    known = SplitRevisions()
    known.changed("rollout.acme.app", record(7))
    waits, begun = call("a", split=6, version="ver_new"), call("b", split=6, version="ver_new", grant_number=1)
    check(known, waits, waiting=("a",))
    check(known, begun)
    known.changed("rollout.acme.app", record(8, share=0))
    for one in (waits, begun):
        with pytest.raises(Conflict):
            check(known, one, waiting=("a",))
    check(known, call("c", split=6, version="ver_1"), waiting=("c",))


def test_who_waits_at_a_home_or_is_handed_over_to_it_stays_while_shares_rise() -> None:
    """Its origin repeats it all the same; so does that of one that was granted from there."""
    former, heir = Site(), Site()
    waits = call("a", split=6, version="ver_1")
    for site in (former, heir):
        site.homes.on_record("rollout.acme.app", record(6))
    former.turn(Enqueue(waits))
    for site in (former, heir):
        site.homes.on_record("rollout.acme.app", record(7, share=5_000))
    again = Enqueue(replace(waits, admitted=True))

    assert former.turn(again) == []
    heir.homes.begin(SHARD, 2, former.homes.end(SHARD))
    heir.ownership.home = ShardOwner("gw1", 2)
    assert heir.turn(again) == []
    heir.homes.on_credit(credit("c1", 1, version="ver_1", function="acme:app.fn"), heir.port.at)
    assert [item.call_id for item in heir.turn() if isinstance(item, Grant)] == ["a"]
    assert stale_of(heir.turn(again)) == []


def test_what_was_sent_to_a_home_that_is_gone_is_let_in_by_no_other_if_it_is_old() -> None:
    """A gateway that stood still sends what lay there to the homes of before, and repeats it to those of now."""
    site = Site()
    site.homes.on_record("rollout.acme.app", record(7, share=5_000))

    said = site.turn(
        Enqueue(call("old", split=6, version="ver_1", admitted=True)),
        Enqueue(call("new", split=7, version="ver_1", admitted=True)),
    )

    assert stale_of(said) == ["old"]


def test_what_an_origin_knows_sooner_counts_for_all() -> None:
    """A user who was sent to the new version by one gateway must not go back by another that is behind, as its home."""
    known = SplitRevisions()
    known.changed("rollout.acme.app", record(7))
    check(known, call("a", split=8), 10.0)
    with pytest.raises(Conflict):
        check(known, call("b", split=7), 10.0 + HEARD_S / 2)
    check(known, call("c", split=7), 10.0 + HEARD_S)
    check(known, call("d", split=9), 20.0)
    known.changed("rollout.acme.app", record(9))
    check(known, call("e", split=9), 20.1)
    check(known, call("f", split=50), 21.0)
    known.changed("rollout.acme.app", None)
    known.changed("rollout.acme.app", record(1))
    check(known, call("g", split=1), 21.1)
