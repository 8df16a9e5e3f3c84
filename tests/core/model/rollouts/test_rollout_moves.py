"""How a record of rollouts moves on."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pilotlight_core.model.errors import BadInput, Conflict
from pilotlight_core.model.rollouts.rollout_moves import (
    called_back,
    check_not_withdrawn,
    ended,
    retried,
    rolled_back,
    running,
    started,
    superseded,
    with_alias,
    with_news,
    with_share,
    without_alias,
    without_news,
)
from pilotlight_core.model.rollouts.rollout_record import (
    LAST_ROLLOUTS,
    MOST_ALIASES,
    MOST_UNTOLD,
    MOST_WITHDRAWN,
    Rollout,
    RolloutRecord,
    RolloutState,
    Verdict,
)

FIRST = Rollout(
    id="rol_1", number=0, control={"predict": "ver_a"}, canary={"predict": "ver_b"}, salt=b"s" * 32,
    since=10.0, started_at=10.0, by="key_1",
)  # fmt: skip


def record() -> RolloutRecord:
    """An app whose first rollout is on its ramp."""
    begun = started(None, "acme", "shop", FIRST)
    return with_share(begun, share=500, twin_share=500, step=1, state=RolloutState.RAMP, at=20.0)


def test_each_move_is_one_revision_on() -> None:
    """So a home tells which of two is the newer."""
    begun = started(None, "acme", "shop", FIRST)

    assert (begun.revision, running(begun).number) == (1, 1)
    assert (record().revision, running(record()).since) == (2, 20.0)


def test_a_share_between_two_steps_does_not_begin_the_step_anew() -> None:
    """The least time at a step counts from when it began."""
    more = with_share(record(), share=700, twin_share=700, at=30.0)

    assert (running(more).share, running(more).since) == (700, 20.0)
    assert with_share(more, share=700, twin_share=700, at=40.0) is more


def test_what_is_to_be_told_is_written_with_its_change() -> None:
    """Each under an id of its own, which says the same however often the change is tried; telling splits nothing."""
    moved = record()
    two = with_news(with_news(moved, "rollout.step", "Step 2.", 20.0), "rollout.held", "It holds.", 20.0)
    assert [news.id for news in two.untold] == ["rol_1.2.0", "rol_1.2.1"]
    assert (two.untold[0].share, two.untold[0].step, two.untold[0].state) == (500, 1, "ramp")
    assert two.revision == moved.revision
    one = without_news(two, ["rol_1.2.0"])
    assert [news.says for news in one.untold] == ["It holds."]
    assert without_news(one, ["rol_1.2.0"]) is one
    for number in range(MOST_UNTOLD):
        two = with_news(two, "rollout.held", str(number), 20.0)
    assert (len(two.untold), two.untold[0].says) == (MOST_UNTOLD, "0")
    none = RolloutRecord(tenant="acme", app="shop", revision=1)
    assert with_news(none, "rollout.step", "Step 1.", 1.0) is none


def test_a_deploy_that_ends_a_rollout_has_it_told() -> None:
    after = superseded(record(), {"predict": "ver_c"}, 30.0, "the app was deployed anew")
    assert [(news.kind, news.state) for news in after.untold] == [("rollout.superseded", "superseded")]
    assert superseded(after, {"predict": "ver_c"}, 31.0, "the app was deployed anew") is after


def test_a_rollback_is_one_move() -> None:
    """Nothing is split any more, the new versions are refused, and why is said."""
    verdict = Verdict(word="regressed", evidence=140.0)

    back = rolled_back(record(), 30.0, "slower", verdict)

    rollout = running(back)
    assert (rollout.share, rollout.twin_share, rollout.state) == (0, 0, RolloutState.ROLLING_BACK)
    assert (rollout.reason, rollout.verdict, back.withdrawn) == ("slower", verdict, {"ver_b": "rol_1"})
    assert rolled_back(back, 40.0, "again") is back


def test_a_rollback_for_want_of_room_leaves_no_mark() -> None:
    """The version is not to blame."""
    assert rolled_back(record(), 30.0, "no_capacity", marked=False).withdrawn == {}


def test_no_share_rises_while_it_rolls_back() -> None:
    """What a slow judge still writes must not undo a person's abort."""
    with pytest.raises(Conflict):
        with_share(rolled_back(record(), 30.0, "aborted"), share=900, twin_share=0, at=31.0)


def test_a_version_that_was_rolled_back_is_refused_until_it_is_tried_once_more() -> None:
    """The next rollout of it needs a word."""
    over = ended(rolled_back(record(), 30.0, "slower"), 40.0, RolloutState.ROLLED_BACK)

    with pytest.raises(Conflict) as caught:
        started(over, "acme", "shop", replace(FIRST, id="rol_2"))
    again = started(over, "acme", "shop", replace(FIRST, id="rol_2"), retry=True)

    assert caught.value.wire_code == "version_withdrawn"
    assert (again.withdrawn, running(again).number) == ({}, 2)
    assert [one.reason for one in again.past] == ["slower"]
    check_not_withdrawn(None, {"predict": "ver_b"})


def test_a_second_rollout_waits_for_the_first() -> None:
    """Their callers would be mixed."""
    with pytest.raises(Conflict) as caught:
        started(record(), "acme", "shop", replace(FIRST, id="rol_2"))

    assert caught.value.wire_code == "rollout_running"


def test_what_has_ended_stays_as_it_is() -> None:
    """A rollback that comes behind the promotion changes nothing."""
    over = ended(record(), 30.0, RolloutState.PROMOTED)

    assert over.rollout is not None
    assert (over.rollout.share, over.rollout.state) == (0, RolloutState.PROMOTED)
    assert rolled_back(over, 31.0, "late") is over
    assert ended(over, 32.0, RolloutState.SUPERSEDED) is over
    with pytest.raises(Conflict):
        with_share(over, share=1, twin_share=0, at=33.0)


def test_only_so_much_is_kept() -> None:
    """Every gateway has the record in memory."""
    one = RolloutRecord(tenant="acme", app="shop", revision=0)
    for number in range(LAST_ROLLOUTS + 5):
        rollout = replace(FIRST, id=f"rol_{number}", canary={"predict": f"ver_{number}"})
        one = ended(rolled_back(started(one, "acme", "shop", rollout), 1.0, ""), 2.0, RolloutState.ROLLED_BACK)
    many = replace(one, withdrawn={f"ver_x{number}": "rol_0" for number in range(MOST_WITHDRAWN)})
    again = started(many, "acme", "shop", replace(FIRST, canary={"predict": "ver_new"}))

    assert len(one.past) == LAST_ROLLOUTS
    withdrawn = rolled_back(again, 3.0, "").withdrawn
    assert (len(withdrawn), list(withdrawn)[-1]) == (MOST_WITHDRAWN, "ver_new")


def test_a_version_may_be_forgiven() -> None:
    """As `--retry` says."""
    back = rolled_back(record(), 30.0, "slower")

    assert retried(back, {"predict": "ver_b"}).withdrawn == {}
    assert retried(back, {"predict": "ver_c"}) is back


def test_aliases_come_and_go() -> None:
    """Each is of one function."""
    one = with_alias(None, "acme", "shop", "predict", "prod", "ver_a")
    two = with_alias(one, "acme", "shop", "predict", "prod", "ver_b")

    assert (one.alias("predict", "prod"), two.alias("predict", "prod"), two.revision) == ("ver_a", "ver_b", 2)
    assert with_alias(two, "acme", "shop", "predict", "prod", "ver_b") is two
    assert without_alias(two, "predict", "prod").aliases == {}
    assert without_alias(two, "predict", "beta") is two


def test_an_alias_is_no_version() -> None:
    """`@v7` would mean something else once there are seven; and there is an end to them."""
    with pytest.raises(BadInput):
        with_alias(None, "acme", "shop", "predict", "v7", "ver_a")
    full = RolloutRecord(
        tenant="acme", app="shop", revision=1, aliases={"f": {f"a{number}": "ver_a" for number in range(MOST_ALIASES)}}
    )
    with pytest.raises(BadInput, match="the most"):
        with_alias(full, "acme", "shop", "f", "one-more", "ver_a")


def test_what_was_called_back_may_be_tried_again() -> None:
    """Then nothing is sent elsewhere that waits for it."""
    back = called_back(None, "acme", "shop", ["ver_b", "ver_x"])
    again = started(back, "acme", "shop", FIRST)

    assert (back.called_back, back.revision) == (("ver_b", "ver_x"), 1)
    assert called_back(back, "acme", "shop", ["ver_x", "ver_b"]) is back
    assert again.called_back == ("ver_x",)
    assert superseded(back, {"predict": "ver_x"}, 1.0, "").called_back == ("ver_b",)
    assert superseded(again, {"predict": "ver_c"}, 1.0, "a deploy").running is None
