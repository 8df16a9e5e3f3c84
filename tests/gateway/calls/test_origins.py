"""The driver of the origin side, and what performs its effects: over a port in memory, with a scripted other side."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from pilotlight_core.host.binding_book import MemoryBindings
from pilotlight_core.model.errors import Cancelled, DeadlineExceeded, Preempted
from pilotlight_core.model.messages.call_messages import (
    LEAST_AHEAD,
    Cancel,
    ChunkGroup,
    ChunkRow,
    Ended,
    Grant,
    Outcome,
    Reconcile,
    Run,
    Spent,
    Started,
    Window,
)
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.messages.scheduling import AskCall, CallReply, Dropped, Enqueue, HandBack, Settle, Withdraw
from pilotlight_core.model.price_book import PriceBook
from pilotlight_core.model.rollouts.rollout_record import Arm, RolloutRecord
from pilotlight_core.model.rollouts.split import Side
from pilotlight_core.model.subjects import SHARDS
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_book import status_of
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.effects import Effect
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.calls.origin import LAST_WORDS_S, Origin, OriginState
from pilotlight_gateway.calls.origins import Origins
from pilotlight_gateway.calls.prepared_call import Go
from pilotlight_gateway.cluster.agent_links import AgentLinks
from pilotlight_gateway.cluster.driver_port import SOON
from pilotlight_gateway.cluster.node_incarnations import NodeIncarnations
from pilotlight_gateway.cluster.router import Outbox, ShardRouter
from pilotlight_gateway.cluster.shard_ownership import MemoryShardOwnership, ShardOwner
from pilotlight_gateway.fleet.node_guard import NodeGuard
from pilotlight_gateway.home.split_revisions import SplitRevisions
from pilotlight_gateway.limits.call_usage import CallUsage
from tests.builders.calls import credit, grant
from tests.gateway.calls.quiet_call import QuietCall, quiet_call
from tests.gateway.driver_port import MemoryDriverPort


class Site:
    """The origins of `gw1`, which is also the home of everything."""

    def __init__(self) -> None:
        self.port = MemoryDriverPort()
        ownership = MemoryShardOwnership(gateway="gw1", home=ShardOwner("gw1", 1))
        self.router = ShardRouter(self.port, ownership, Outbox(self.port, "r"), gateway="gw1")
        self.bodies = LargeBodies(url="http://gw1", budget=ByteBudget(limit=10**6))
        self.guard = NodeGuard(MemoryBindings())
        self.splits = SplitRevisions()
        self.origins = Origins(
            self.port, AgentLinks(self.port, "r"), ownership, self.router, self.router.origin_inbox,
            self.bodies, self.guard, NodeIncarnations(), region="r", gateway="gw1", splits=self.splits,
        )  # fmt: skip
        self.turn()

    def turn(self) -> None:
        self.origins.take_turn(self.port.at)

    def begin(self, name: str = "a", **more: Any) -> QuietCall:
        live = quiet_call(name, at=self.port.at, **more)
        self.origins.begin(live)
        return live

    def send(self, usage: CallUsage | None = None) -> QuietCall:
        """A call that its container has."""
        live = self.begin(usage=usage)
        self.router.origin_inbox.append(grant())
        self.turn()
        self.said()
        return live

    def said(self) -> list[object]:
        """What homes were told since."""
        items: list[object] = [item for _, item in self.router.home_inbox]
        self.router.home_inbox.clear()
        return items


def ended(outcome: Outcome = Outcome.OK, **more: Any) -> Ended:
    return Ended(call_id="a", grant_number=1, container="c1", outcome=outcome, output=b"42", **more)


def test_a_call_is_enqueued_granted_sent_and_answered() -> None:
    """The whole way, in the order in which it is said; in the end its alarm is gone and its status known."""
    site = Site()
    live = site.begin()
    (asked,) = site.said()
    assert isinstance(asked, Enqueue)
    site.router.origin_inbox.append(grant())
    site.turn()
    (run,) = site.port.told(Run)
    assert (run.call_id, run.grant_number, run.container) == ("a", 1, "c1")

    site.origins.on_frame("n1", ended())
    (result,) = live.said
    assert isinstance(result, CallResult)
    assert result.output == b"42"
    assert [type(item) for item in site.said()] == [Settle]
    site.origins.end(live)
    assert (len(site.origins), site.origins._alarms.next()) == (0, None)
    told = site.origins.answer(AskCall(tenant="acme", call_id="a"))
    assert told.status is not None
    assert told.status.state == "succeeded"


def test_whoever_compares_versions_is_told_of_a_start_that_failed() -> None:
    """As of the call that its caller made, also once the prices have changed."""
    site, told = Site(), list[tuple[str, str, CallResult | None]]()
    site.origins.on_failed_start = lambda call, code, course: told.append((call.call_id, code, course))
    site.origins.set_prices(PriceBook(rates={"cpu": 7_200 * 10**9}))
    live = site.begin(side=Side("rol_1", Arm.TWIN, 0.5, ""), split=3)
    spec = replace(live.call.version.spec, retries=1)
    live.call.version = replace(live.call.version, spec=spec)
    site.router.origin_inbox.append(grant())
    site.turn()
    site.origins.on_frame("n1", ended(Outcome.RAISED, nth=7, batch=3))

    assert told == [("a", "function_raised", CallResult(output=b"", container="c1", nth=7, batch=3))]


def test_a_fault_of_who_compares_versions_costs_no_call_its_answer() -> None:
    """Neither when it begins nor when it is run again."""
    site = Site()

    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    site.origins.on_failed_start = site.origins.on_begun = fail
    live = site.begin(side=Side("rol_1", Arm.TWIN, 0.5, ""), split=3)
    live.call.version = replace(live.call.version, spec=replace(live.call.version.spec, retries=1))
    site.router.origin_inbox.append(grant())
    site.turn()
    site.origins.on_frame("n1", Started(call_id="a", grant_number=1, nth=7))
    site.origins.on_frame("n1", ended(Outcome.RAISED, nth=7, batch=3))
    assert live.origin.state is OriginState.WAITING


def test_who_watches_rollouts_hears_when_their_calls_begin() -> None:
    """Of others, and of a node that a call was not sent to, nothing."""
    site, begun = Site(), []
    site.origins.on_begun = lambda live, started, at: begun.append((live.call.call_id, started.nth, at))
    site.send()
    site.origins.on_frame("n1", Started(call_id="a", grant_number=1, nth=7))
    site.origins.on_frame("n1", ended())
    assert begun == []
    site.begin("b", side=Side("rol_1", Arm.CANARY, 0.5, ""))
    site.router.origin_inbox.append(grant(call_id="b"))
    site.turn()
    for node in ("n2", "n1"):
        site.origins.on_frame(node, Started(call_id="b", grant_number=1, nth=7))
    assert begun == [("b", 7, site.port.at)]


def test_a_call_on_a_node_that_is_taken_away_ends_as_preempted_though_nobody_says_so() -> None:
    """Its container's credits have told it: the last one came before the node was silent."""
    site = Site()
    live = site.send()
    site.origins.on_credit(credit("c1", state=ContainerState.DRAINING, preempted=True), site.port.at)
    site.origins.on_credit(credit("c1", state=ContainerState.GONE, preempted=True), site.port.at)
    site.port.at += 2 * LAST_WORDS_S
    site.turn()

    assert isinstance(live.error, Preempted)


def test_chunks_of_several_calls_reach_their_callers() -> None:
    """Those of a call that is gone, of another grant or of a strange node do not; the others go on."""
    site = Site()
    live = site.send()
    site.origins.on_chunks(
        "n1",
        ChunkGroup(rows=(ChunkRow("gone", 1, 1, (b"x",)), ChunkRow("a", 2, 1, (b"x",)), ChunkRow("a", 1, 1, (b"1",)))),
    )
    site.origins.on_chunks("n2", ChunkGroup(rows=(ChunkRow("a", 1, 2, (b"x",)),)))
    site.origins.on_chunks("n1", ChunkGroup(rows=(ChunkRow("a", 1, 2, (b"2", b"3")),)))

    assert live.said == [(1, (b"1",)), (2, (b"2", b"3"))]


def test_chunks_that_their_caller_takes_are_read() -> None:
    """Its container is told to go on, as behind those that were relayed; what it does not take is, and the first."""
    site = Site()
    live = site.send()
    live.takes = True
    site.origins.on_chunks("n1", ChunkGroup(rows=(ChunkRow("a", 1, 1, (b"1",)),)))
    site.origins.on_chunks("n1", ChunkGroup(rows=(ChunkRow("a", 1, 2, (b"x",) * LEAST_AHEAD),)))
    live.takes = False
    site.origins.on_chunks("n1", ChunkGroup(rows=(ChunkRow("a", 1, LEAST_AHEAD + 2, (b"9",)),)))

    assert live.said == [(1, (b"1",)), ("taken", 2, LEAST_AHEAD), (LEAST_AHEAD + 2, (b"9",))]
    assert site.port.told(Window) == [Window(call_id="a", upto=LEAST_AHEAD + 1)]


def test_a_call_that_waits_repeats_itself_and_ends_at_its_deadline() -> None:
    """The driver asks for a turn at the instants that its origins name, and no sooner."""
    site = Site()
    site.port.woken()
    live = site.begin(within_s=5.0)
    site.said()
    assert site.port.woken() == SOON  # for the home's inbox
    site.port.at += 2.0
    site.turn()
    assert [type(item) for item in site.said()] == [Enqueue]
    site.port.at += 3.0
    site.turn()
    assert isinstance(live.error, DeadlineExceeded)
    assert [type(item) for item in site.said()] == [Withdraw]


def test_a_grant_of_a_call_that_is_gone_is_settled() -> None:
    """It was on its way when the caller went."""
    site = Site()
    live = site.begin()
    site.origins.end(live)
    assert isinstance(live.error, Cancelled)
    site.said()
    site.router.origin_inbox.append(grant())
    site.turn()

    assert site.said() == [Settle(call_id="a", node="n1", container="c1", grant_number=1)]
    assert site.port.told(Run) == []


def test_what_cannot_be_sent_goes_back_to_its_home() -> None:
    """Nobody listens there, or there is no bus: it has provably not started."""
    site = Site()
    site.begin()
    site.said()
    site.port.connected = False
    site.router.origin_inbox.append(grant())
    site.turn()
    (back,) = site.said()
    assert isinstance(back, HandBack)

    site.port.connected = True
    site.router.origin_inbox.append(grant(2))
    site.turn()
    site.origins.on_unheard("a", 2)
    assert [type(item) for item in site.said()] == [HandBack]


def test_a_call_with_a_hook_is_sent_when_that_allows_it() -> None:
    """Until then its agent is not asked for it; if it is not allowed, the grant is given back."""
    for allowed in (True, False):
        site, gates = Site(), list[Go]()
        live = site.begin(start_hook=lambda _, go, gates=gates: gates.append(go))
        site.router.origin_inbox.append(grant())
        site.turn()
        site.said()
        assert (site.port.told(Run), live.heard_at) == ([], float("inf"))

        assert gates.pop()(allowed=allowed) is allowed
        assert [run.call_id for run in site.port.told(Run)] == ["a"] * allowed
        assert [type(item) for item in site.said()] == [Settle] * (not allowed)


def test_a_refusal_of_the_home_ends_the_call() -> None:
    """With its code, and when to come again."""
    site = Site()
    live = site.begin()
    site.router.origin_inbox.append(
        Dropped(call_id="a", gateway="gw1", code="queue_full", detail="no", retry_after=2.0)
    )
    site.turn()
    assert live.error is not None
    assert (live.error.wire_code, live.error.retry_after) == ("queue_full", 2.0)
    assert status_of(live, site.port.at).error == {"code": "queue_full", "detail": live.error.detail}


def test_calls_that_wait_are_enqueued_at_a_new_home() -> None:
    """Those of its shards, and no others."""
    site = Site()
    live = site.begin()
    site.said()
    site.origins.homes_changed(frozenset({(live.shard + 1) % SHARDS}))
    assert site.said() == []
    site.origins.homes_changed(frozenset({live.shard}))
    assert [type(item) for item in site.said()] == [Enqueue]


def test_another_gateway_may_ask_for_a_call_and_end_it() -> None:
    """A tenant finds its own calls alone."""
    site = Site()
    live = site.send()
    for tenant, cancelled in (("mallory", False), ("acme", True)):
        site.origins.on_ask("", AskCall(tenant=tenant, call_id="a", cancel=True), "inbox")
        assert site.port.told(CallReply)[-1].cancelled is cancelled
    assert isinstance(live.error, Cancelled)
    assert [told.call_id for told in site.port.told(Cancel)] == ["a"]


def test_what_a_call_takes_that_nobody_waits_for_is_heard_of() -> None:
    """Its usage stays open, its agent is asked, and what it says closes it."""
    site, usage = Site(), CallUsage()
    live = site.send(usage=usage)
    site.origins.end(live)
    settled = list[CallUsage]()
    usage.settle(settled.append)
    site.port.at += 2.5
    site.turn()
    assert site.port.told(Reconcile)[-1].grants == {"a": 1}

    site.origins.on_frame("n1", ended(Outcome.CANCELLED))
    assert settled == [usage]
    assert [type(item) for item in site.said()] == [Settle]


def test_a_call_that_failed_is_told_what_it_is_billed() -> None:
    """At the prices of now; one that never ran is told nothing."""
    site = Site()
    site.origins.set_prices(PriceBook(rates={"cpu": 7_200 * 10**9}))
    site.port.at += 1.0
    live = site.send()
    site.port.at += 1.0
    site.origins.on_frame("n1", ended(Outcome.RAISED, spent=Spent(ns=10**6, ppm=500_000, price="cpu")))
    site.turn()

    assert live.error is not None
    usage = live.error.more["usage"]
    assert (usage.ns, usage.price, usage.attempts) == (10**6, "cpu", 1)
    assert Decimal(usage.cost) == Decimal("0.001")
    waiting = site.begin("b")
    site.origins.end(waiting)
    assert waiting.error is None or "usage" not in waiting.error.more


def test_a_stream_that_waits_is_told_the_steps_of_a_start_whatever_their_names() -> None:
    """An agent names them as it likes, also as our parameters are named."""
    site = Site()
    live = site.begin(stream=True)
    live.said.clear()
    steps = dict.fromkeys(("stage", "name", "ms", "detail", "version", "self", "at"), 0.5)
    told = credit("c1", 1, version=live.call.version.id, state=ContainerState.LOADING, timeline=steps)
    site.origins.on_credit(told, site.port.at)
    assert live.said == [("loading", steps)]


class Broken(Origin):
    """An origin in which something goes wrong."""

    def granted(self, grant: Grant, at: float) -> list[Effect]:
        raise KeyError("what is this")


def test_a_call_that_goes_wrong_stops_no_other() -> None:
    """The turn goes on with what others wait for."""
    site = Site()
    broken, live = site.begin("b"), site.begin("a")
    broken.origin = Broken(broken.call, "gw1", site.port.at)
    site.router.origin_inbox.extend([grant(call_id="b"), grant()])
    site.turn()
    assert live.origin.grant == grant()


def test_the_calls_of_a_tenant_end_together() -> None:
    """Waiting or running, each once, with the reason; those of others and what has ended stay as they are."""
    site = Site()
    live = site.send()
    over = {"acme"}

    assert site.origins.end_calls_of(lambda tenant: tenant == "zoo", "because") == 0
    assert site.origins.end_calls_of(over.__contains__, "Its tenant was disabled.") == 1
    assert site.origins.end_calls_of(over.__contains__, "Its tenant was disabled.") == 0

    assert isinstance(live.error, Cancelled)
    assert live.error.detail == "Its tenant was disabled."
    assert any(isinstance(message, Cancel) for _, message in site.port.sent)


CANARY, CONTROL = Side("rol_1", Arm.CANARY, 0.5, ""), Side("rol_1", Arm.CONTROL, 0.0, "")


def late_grant(site: Site, side: Side | None, *, still_s: float, split: int = 7) -> QuietCall:
    """A call whose grant is read once its gateway has stood still."""
    live = site.begin(side=side, split=split)
    site.turn()
    site.said()
    site.port.at += still_s
    site.router.origin_inbox.append(grant())
    site.turn()
    return live


def test_a_grant_that_a_stopped_gateway_finds_is_not_used_for_a_new_version() -> None:
    """The rollout may have been rolled back meanwhile: the slot is free again, and the side is chosen anew."""
    site = Site()
    live = late_grant(site, CANARY, still_s=20.0)

    assert live.error is not None
    assert live.error.wire_code == "stale_split"
    assert Settle(call_id="a", node="n1", container="c1", grant_number=1) in site.said()
    assert site.port.told(Run) == []


@pytest.mark.parametrize(("side", "still_s", "split"), [(CONTROL, 20.0, 7), (None, 20.0, -1), (CANARY, 0.4, 7)])
def test_any_other_grant_is_used(side: Side | None, still_s: float, split: int) -> None:
    """Of the old version, of a version that was named, and of a process that was only busy."""
    site = Site()
    late_grant(site, side, still_s=still_s, split=split)

    assert len(site.port.told(Run)) == 1


def test_what_was_chosen_since_a_gateway_woke_is_sent() -> None:
    """It was chosen by what the bus says now."""
    site = Site()
    late_grant(site, CANARY, still_s=20.0)
    site.begin("b", side=CANARY, split=8)
    site.router.origin_inbox.append(grant(call_id="b"))
    site.turn()

    assert [run.call_id for run in site.port.told(Run)] == ["b"]


@pytest.mark.parametrize(("split", "sent"), [(7, 0), (8, 1), (-1, 1)])
def test_a_grant_is_not_used_for_a_version_that_was_called_back(split: int, sent: int) -> None:
    """Its home may know that later than this gateway; what was chosen since, or names the version, is sent."""
    site = Site()
    site.begin(side=CANARY, split=split)
    record = RolloutRecord(tenant="acme", app="a", revision=8, called_back=("ver_1",))
    site.splits.changed("rollout.acme.a", record)
    site.router.origin_inbox.append(grant())
    site.turn()

    assert len(site.port.told(Run)) == sent
