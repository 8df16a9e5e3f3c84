"""Asks and ends of one turn are one message to each home, and failures to send are returned."""

from __future__ import annotations

from pilotlight_core.model import subjects
from pilotlight_core.model.messages.limiting import LimitAsk, LimitEnd, ToLimitHome
from pilotlight_gateway.cluster.driver_port import NEVER, SOON
from pilotlight_gateway.limits.limits_outbox import AT_ONCE, LimitOutbox
from tests.gateway.driver_port import MemoryDriverPort

REGION = "local"
ANSWERS = subjects.allowed(REGION, "g1")


def ask(number: int) -> LimitAsk:
    return LimitAsk(number, "acme", "acme:a.f")


def end(number: int) -> LimitEnd:
    return LimitEnd(number, "acme", "acme:a.f")


def test_items_of_one_turn_are_one_message_to_each_home() -> None:
    """Asks and ends travel together and in order at the end of the turn; later ones go with the next."""
    port = MemoryDriverPort()
    outbox = LimitOutbox(port, REGION, "g1")
    for number in (1, 2):
        outbox.ask("h1", ask(number))
    outbox.ask("h2", ask(3))
    outbox.end("h1", end(0))
    assert (port.sent, port.woken()) == ([], SOON)

    assert outbox.flush() == []
    assert outbox.flush() == []
    assert port.woken() == NEVER
    outbox.end("h1", end(1))
    assert port.woken() == SOON
    assert outbox.flush() == []

    assert port.sent == [
        (
            subjects.limits(REGION, "h1"),
            ToLimitHome(gateway="g1", asks=(ask(1), ask(2)), ends=(end(0),)),
        ),
        (subjects.limits(REGION, "h2"), ToLimitHome(gateway="g1", asks=(ask(3),))),
        (subjects.limits(REGION, "h1"), ToLimitHome(gateway="g1", ends=(end(1),))),
    ]


def test_no_message_carries_more_than_allowed() -> None:
    """All asks of a large turn are sent, once and in order."""
    port = MemoryDriverPort()
    outbox = LimitOutbox(port, REGION, "g1")
    for number in range(AT_ONCE + 1):
        outbox.ask("h1", ask(number))
    for number in range(2 * AT_ONCE + 1):
        outbox.end("h1", end(number))

    assert outbox.flush() == []

    letters = port.told(ToLimitHome)
    assert [(len(letter.asks), len(letter.ends)) for letter in letters] == [(AT_ONCE, AT_ONCE), (1, AT_ONCE), (0, 1)]
    assert [one.number for letter in letters for one in letter.asks] == list(range(AT_ONCE + 1))
    assert [one.number for letter in letters for one in letter.ends] == list(range(2 * AT_ONCE + 1))


def test_asks_request_a_report_of_missing_listeners() -> None:
    """Ends alone do not, since the next report of permits repairs a lost one."""
    port = MemoryDriverPort()
    outbox = LimitOutbox(port, REGION, "g1")
    outbox.ask("h1", ask(1))
    outbox.end("h2", end(1))
    outbox.flush()

    assert port.replies == [ANSWERS, ""]


def test_homes_to_which_asks_could_not_be_sent_are_returned() -> None:
    """Their callers ask again at once, and the unsent messages are forgotten."""
    port = MemoryDriverPort(connected=False)
    outbox = LimitOutbox(port, REGION, "g1")
    outbox.ask("h1", ask(1))
    outbox.end("h2", end(1))

    assert outbox.flush() == ["h1"]
    assert not outbox.send("some.subject", ToLimitHome(gateway="g1"))

    port.connected = True
    assert outbox.flush() == []
    assert port.sent == []
    assert outbox.send("some.subject", ToLimitHome(gateway="g1"))
