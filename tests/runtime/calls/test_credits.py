"""What is said of containers' room."""

from __future__ import annotations

from collections.abc import Callable

from pilotlight_core.bus import BusDown, MessageTooLarge
from pilotlight_core.model.messages.call_messages import RemoteError
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.node_messages import ContainerState, Credit
from pilotlight_runtime.calls.credits import REPEAT_GONE_S, Credits
from pilotlight_runtime.calls.gateway_links import GatewayLinks


class Source:
    """A container."""

    def __init__(self, name: str) -> None:
        self.id = name
        self.version = "ver_1"
        self.tenant = "acme"
        self.function = "acme:app.fn"
        self.state = ContainerState.READY
        self.reason = ""
        self.error: RemoteError | None = None
        self.timeline = {"import": 1.0}
        self.slots = 2
        self.held: tuple[str, ...] = ("call_1",)
        self.batch_room = 0
        self.is_preempted = False
        self.spare = 0
        self.pressure = 0.0


class World:
    """A bus that writes down, and a loop that is turned by hand."""

    def __init__(self) -> None:
        self.sent: list[Credit] = []
        self.told: list[tuple[str, str]] = []
        self.subjects = {"pl.local.credit.n.ver_1"}
        self.down = False
        self.too_large = ""
        self.soon: list[Callable[[], None]] = []
        self.links = GatewayLinks(self, region="local", node="n", instance="i")
        self.credits = Credits(
            self, self.links, region="local", node="n", instance="i", epoch_of=lambda _: 7, call_soon=self.soon.append
        )

    def publish_nowait(self, subject: str, message: Message, *, reply: str = "") -> None:
        if self.down:
            raise BusDown("down")
        assert isinstance(message, Credit)
        if message.container == self.too_large:
            raise MessageTooLarge("too large")
        assert subject in self.subjects
        self.told.append((subject, message.container))
        self.sent.append(message)

    def turn(self) -> None:
        callbacks = self.soon.copy()
        self.soon.clear()
        for callback in callbacks:
            callback()


def test_many_changes_are_one_message() -> None:
    """The last state counts, and numbers rise."""
    world, container = World(), Source("c1")
    world.credits.publish_soon(container)
    container.held = ()
    world.credits.publish_soon(container)
    world.turn()
    world.credits.publish_soon(container)
    world.turn()

    assert [(credit.container, credit.held, credit.seq, credit.epoch) for credit in world.sent] == [
        ("c1", (), 1, 7),
        ("c1", (), 2, 7),
    ]


def test_an_end_is_repeated_for_a_while() -> None:
    """For homes and controllers that missed it."""
    world, container = World(), Source("c1")
    container.state = ContainerState.GONE
    world.credits.container_gone(container, 100.0)
    world.turn()
    world.credits.publish_all([], 101.0)
    world.credits.publish_all([], 101.0 + REPEAT_GONE_S)

    assert [credit.state for credit in world.sent] == [ContainerState.GONE] * 2


def test_while_the_bus_is_down_nothing_is_lost_for_good() -> None:
    """What could not be said is said with the next second."""
    world, container = World(), Source("c1")
    world.down = True
    world.credits.publish_soon(container)
    world.turn()
    world.down = False
    world.credits.publish_all([container], 1.0)

    assert len(world.sent) == 1


def test_a_credit_that_does_not_fit_the_bus_harms_no_other() -> None:
    """What tenants write is bounded before; should that fail once, the other containers are told of."""
    world = World()
    world.too_large = "c1"
    world.credits.publish_soon(Source("c1"))
    world.credits.publish_soon(Source("c2"))

    world.turn()

    assert [credit.container for credit in world.sent] == ["c2"]


def test_a_freed_slot_is_told_to_its_home_alone() -> None:
    """Everybody else hears of it with the next second; who hears it anyway need not hear it twice."""
    world, first, second = World(), Source("c1"), Source("c2")
    world.subjects = {"pl.local.credit.n.ver_1", "pl.local.gw.gw-2.reply.n"}
    world.credits.slot_freed(first, "gw-2")
    world.credits.slot_freed(first, "gw-2")
    world.credits.slot_freed(second, "gw-2")
    world.credits.publish_soon(second)
    world.turn()

    assert world.told == [("pl.local.credit.n.ver_1", "c2"), ("pl.local.gw.gw-2.reply.n", "c1")]
    assert not world.soon
