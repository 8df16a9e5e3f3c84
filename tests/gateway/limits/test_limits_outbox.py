"""Asks and ends of one turn are one message to each home, and who cannot be asked is known at once."""

from __future__ import annotations

from pilotlight_core.model import subjects
from pilotlight_core.model.messages.limiting import LimitAsk, LimitEnd, ToLimitHome
from pilotlight_gateway.cluster.driver_port import NEVER
from pilotlight_gateway.limits.limits_outbox import AT_ONCE, LimitOutbox
from tests.gateway.driver_port import MemoryDriverPort

HOMES = {subjects.limits("local", home): home for home in ("h1", "h2")}


def outbox_on(port: MemoryDriverPort) -> LimitOutbox:
    return LimitOutbox(port, "local", "g1")


def sent_to_homes(port: MemoryDriverPort) -> list[tuple[str, ToLimitHome]]:
    return [(HOMES[subject], message) for subject, message in port.sent if isinstance(message, ToLimitHome)]


def ask(number: int) -> LimitAsk:
    return LimitAsk(number, "acme", "acme:a.f")


def end(number: int) -> LimitEnd:
    return LimitEnd(number, "acme", "acme:a.f")


def test_what_comes_up_in_one_turn_is_one_message_to_each_home() -> None:
    """Asks and ends travel together and in order; what comes up later is the next one."""
    port = MemoryDriverPort()
    outbox = outbox_on(port)
    for number in (1, 2):
        outbox.ask("h1", ask(number))
    outbox.ask("h2", ask(3))
    outbox.end("h1", end(0))
    assert port.woken() < port.at
    assert outbox.flush() == []
    assert port.woken() == NEVER
    outbox.end("h1", end(1))
    assert outbox.flush() == []

    assert sent_to_homes(port) == [
        ("h1", ToLimitHome(gateway="g1", asks=(ask(1), ask(2)), ends=(end(0),))),
        ("h2", ToLimitHome(gateway="g1", asks=(ask(3),))),
        ("h1", ToLimitHome(gateway="g1", ends=(end(1),))),
    ]


def test_no_message_carries_more_than_fits_one() -> None:
    """Of a crowd in one turn everybody's ask arrives, once."""
    port = MemoryDriverPort()
    outbox = outbox_on(port)
    for number in range(AT_ONCE + 1):
        outbox.ask("h1", ask(number))
    outbox.flush()

    letters = [letter for _, letter in sent_to_homes(port)]
    assert [len(letter.asks) for letter in letters] == [AT_ONCE, 1]
    assert [one.number for letter in letters for one in letter.asks] == list(range(AT_ONCE + 1))


def test_homes_that_cannot_be_asked_are_named() -> None:
    """Their callers are told at once, not when their patience ends; of ends their home hears by holdings."""
    port = MemoryDriverPort(connected=False)
    outbox = outbox_on(port)
    outbox.ask("h1", ask(1))
    outbox.end("h2", end(1))

    assert outbox.flush() == ["h1"]
    assert not outbox.send("some.subject", ToLimitHome(gateway="g1"))
    assert port.sent == []
