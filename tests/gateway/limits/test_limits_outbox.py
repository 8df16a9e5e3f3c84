"""Asks and ends of one turn of the loop are one message to each home, over a real bus."""

from __future__ import annotations

from pilotlight_core.bus import NO_RESPONDERS, Bus, Handler, connect
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.limiting import LimitAsk, LimitEnd, ToLimitHome
from pilotlight_gateway.limits.limits_outbox import AT_ONCE, LimitOutbox
from tests.waiting import until


class Post:
    """A gateway's outbox, and what homes get of it."""

    def __init__(self, bus: Bus, homes: Bus) -> None:
        self.region = f"r{token(6)}"
        self.unsent: list[str] = []
        self.got: dict[str, list[ToLimitHome]] = {"h1": [], "h2": []}
        self.outbox = LimitOutbox(bus, self.region, "g1", self.unsent.append)
        self._homes = homes

    async def listen(self) -> None:
        for home, got in self.got.items():
            await self._homes.subscribe(subjects.limits(self.region, home), keep_in(got))
        await self._homes.flush()


def keep_in(got: list[ToLimitHome]) -> Handler:
    """A subscriber that keeps what it gets."""

    def keep(_subject: str, message: object, _reply: str) -> None:
        assert isinstance(message, ToLimitHome)
        got.append(message)

    return keep


def ask(number: int) -> LimitAsk:
    return LimitAsk(number, "acme", "acme:a.f")


def end(number: int) -> LimitEnd:
    return LimitEnd(number, "acme", "acme:a.f")


async def test_what_comes_up_in_one_turn_is_one_message_to_each_home(bus: Bus, other: Bus) -> None:
    """Asks and ends travel together and in order; what comes up later is the next one."""
    post = Post(bus, other)
    await post.listen()
    for number in (1, 2):
        post.outbox.ask("h1", ask(number))
    post.outbox.ask("h2", ask(3))
    post.outbox.end("h1", end(0))
    await until(lambda: all(post.got.values()))
    post.outbox.end("h1", end(1))
    await until(lambda: len(post.got["h1"]) == 2)

    assert post.got == {
        "h1": [
            ToLimitHome(gateway="g1", asks=(ask(1), ask(2)), ends=(end(0),)),
            ToLimitHome(gateway="g1", ends=(end(1),)),
        ],
        "h2": [ToLimitHome(gateway="g1", asks=(ask(3),))],
    }
    assert post.unsent == []


async def test_no_message_carries_more_than_fits_one(bus: Bus, other: Bus) -> None:
    """Of a crowd in one turn everybody's ask arrives, once."""
    post = Post(bus, other)
    await post.listen()
    for number in range(AT_ONCE + 1):
        post.outbox.ask("h1", ask(number))
    await until(lambda: sum(len(letter.asks) for letter in post.got["h1"]) > AT_ONCE)

    assert [len(letter.asks) for letter in post.got["h1"]] == [AT_ONCE, 1]
    assert [one.number for letter in post.got["h1"] for one in letter.asks] == list(range(AT_ONCE + 1))


async def test_of_a_home_that_nobody_is_the_asker_hears_on_its_own_subject(bus: Bus, other: Bus) -> None:
    """The bus says so where answers come; ends alone want no answer, so nothing is said of them."""
    post = Post(bus, other)
    heard: list[tuple[object, str]] = []
    answers = subjects.allowed(post.region, "g1")
    await bus.subscribe(answers, lambda _, message, subject: heard.append((message, subject)))

    post.outbox.end("nobody", end(1))
    await bus.flush()
    post.outbox.ask("nobody", ask(1))
    await until(lambda: heard)

    assert heard == [(NO_RESPONDERS, subjects.limits(post.region, "nobody"))]


async def test_asks_that_cannot_be_sent_are_said_to_be_unsent(server_url: str, other: Bus) -> None:
    """Their callers are told at once, not when their patience ends; of ends their home hears by holdings."""
    async with connect(server_url, name="closes") as bus:
        post = Post(bus, other)

    post.outbox.ask("h1", ask(1))
    post.outbox.end("h2", end(1))
    post.outbox.flush()

    assert post.unsent == ["h1"]
    assert not post.outbox.send("some.subject", ToLimitHome(gateway="g1"))
