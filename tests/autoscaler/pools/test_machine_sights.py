"""What a leader has seen of machines."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler.pools.machine_sights import ORPHANED_S, MachineSights
from pilotlight_autoscaler.pools.node_pool import PoolMachine
from tests.builders.pools import launch

ONE = launch(1)
MACHINE = PoolMachine(launch=ONE.id, provider_id="i-1", node=ONE.node)


def test_lists_say_who_is_there_and_since_when_not() -> None:
    """The instant is that of the first list without it."""
    sights = MachineSights(watched_since=1.0)
    assert sights.list_age("l4", 2.0) is None
    assert not sights.sight(ONE).is_listed
    sights.list_read("l4", [MACHINE], [ONE], 10.0)
    assert (sights.sight(ONE).is_listed, sights.sight(ONE).listed_at, sights.list_age("l4", 12.0)) == (True, 10.0, 2.0)
    sights.list_read("l4", [], [ONE], 20.0)
    sights.list_read("l4", [], [ONE], 30.0)
    assert sights.sight(ONE).unlisted_since == 20.0
    assert not sights.sight(ONE).is_listed
    sights.list_read("l4", [MACHINE], [ONE], 40.0)
    assert sights.sight(ONE).unlisted_since is None


def test_a_list_says_nothing_of_what_was_launched_behind_it() -> None:
    """It was asked for before, and read late."""
    sights = MachineSights()
    sights.list_read("l4", [], [launch(1, made_at=50.0)], 10.0)
    assert sights.sight(ONE).unlisted_since is None


def test_reports_say_who_is_heard_and_empty() -> None:
    """A node that is not heard of any more was heard of before."""
    sights = MachineSights()
    sights.node_seen(ONE.id, 5.0, is_empty=True, at=6.0)
    sights.node_seen(ONE.id, None, is_empty=True, at=9.0)
    assert (sights.sight(ONE).heard_at, sights.sight(ONE).is_empty, sights.empty_since(ONE.id)) == (5.0, True, 6.0)
    sights.node_seen(ONE.id, 10.0, is_empty=False, at=10.0)
    assert sights.empty_since(ONE.id) is None
    assert sights.last_report_at(ONE.id) == 10.0
    sights.watched_since = 10.5
    assert sights.last_report_at(ONE.id) == 10.5
    sights.asked(ONE.id, 11.0)
    sights.asking.add(ONE.id)
    assert sights.sight(ONE).asked_at == 11.0
    assert sights.sight(ONE).is_asking
    sights.keep({})
    assert sights.sight(ONE).heard_at is None
    assert sights.sight(ONE).asked_at is None


def test_machines_without_a_record_are_orphans_after_a_while() -> None:
    """Not if they go, or their record comes."""
    sights = MachineSights()
    leaving = PoolMachine(launch="other", provider_id="i-2", is_ending=True)
    sights.list_read("l4", [MACHINE, leaving], [], 0.0)
    assert sights.orphans("l4", (), 0.0) == []
    assert sights.orphans("l4", (), ORPHANED_S + 1.0) == [MACHINE]
    assert sights.orphans("l4", (ONE.id,), ORPHANED_S + 2.0) == []
    assert sights.orphans("l4", (), ORPHANED_S + 3.0) == []
    sights.list_read("l4", [], [], 200.0)
    sights.keep({})
    assert sights.orphans("l4", (), 400.0) == []


@pytest.mark.parametrize(("on_record", "ending", "kept"), [("", "", "i-1"), ("i-2", "", "i-2"), ("", "i-1", "i-2")])
def test_of_two_machines_with_one_tag_one_is_the_launch_and_the_other_an_orphan(
    on_record: str, ending: str, kept: str
) -> None:
    """The one on record, or one that stays; in whichever order they are listed."""
    record = launch(1, provider_id=on_record)
    both = [
        PoolMachine(launch=ONE.id, provider_id=name, node=ONE.node, is_ending=name == ending) for name in ("i-2", "i-1")
    ]
    for listed in (both, both[::-1]):
        sights = MachineSights()
        sights.list_read("l4", listed, [record], 0.0)
        found = sights.machine(record)
        assert found is not None
        assert found.provider_id == kept
        sights.orphans("l4", (ONE.id,), 0.0)
        orphans = {each.provider_id for each in sights.orphans("l4", (ONE.id,), ORPHANED_S + 1.0)}
        assert orphans == {"i-1", "i-2"} - {kept, ending}
