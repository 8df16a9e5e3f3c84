"""Kept calls over the bus."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from pilotlight_core.bus import Bus, BusDown, MessageTooLarge
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.scheduling import MOST_OF_BATCH, AskKept, KeptTold, TraceBatch
from pilotlight_core.model.messages.wire import encode
from pilotlight_core.model.spec import SLO
from pilotlight_core.model.tracing.packed_calls import unpacked
from pilotlight_core.model.tracing.trace_context import SAMPLED_HERE
from pilotlight_core.model.tracing.trace_sampling import UNSAMPLED
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.traces.trace_exchange import MOST_ASKED, TraceExchange, kept_of
from pilotlight_gateway.traces.trace_keeper import TraceKeeper
from tests.builders.calls import grant, prepared_call
from tests.builders.kept import STAGES, kept_call
from tests.builders.specs import function_spec, method, version_record


def keeping(*ids: str, **more: str) -> TraceKeeper:
    """A gateway that keeps calls of these ids, the last of them the newest."""
    keeper = TraceKeeper(UNSAMPLED, gateway="g1")
    for at, call_id in enumerate(ids):
        keeper.calls.add(kept_call(id=call_id, arrived_ns=at, **more))
    return keeper


def exchange(bus: Bus, keeper: TraceKeeper, region: str, gateway: str, *others: str) -> TraceExchange:
    return TraceExchange(bus, keeper, lambda: others, region=region, gateway=gateway)


async def test_a_tenants_calls_are_found_at_all_gateways(bus: Bus) -> None:
    """The newest first, whoever is asked; what one of them keeps for another tenant is not."""
    region = token(8)
    keeper = keeping("call_1")
    keeper.calls.add(kept_call(id="call_x", tenant="other"))
    first, second = (
        exchange(bus, keeper, region, "g1", "g2"),
        exchange(bus, keeping("call_0", "call_2"), region, "g2", "g1"),
    )
    async with first.running(), second.running():
        found, silent = await first.find(AskKept(tenant="acme"))
        assert ([call.id for call in found], silent) == (["call_2", "call_1", "call_0"], [])
        found, _ = await second.find(AskKept(tenant="acme", call_id="call_1"))
        assert [call.id for call in found] == ["call_1"]
        assert (await second.find(AskKept(tenant="acme", call_id="call_x"))) == ([], [])


async def test_a_gateway_that_does_not_answer_is_named(bus: Bus) -> None:
    """What the others keep is there all the same."""
    region = token(8)
    async with exchange(bus, keeping("call_1"), region, "g1", "gone").running():
        found, silent = await exchange(bus, keeping(), region, "g2", "g1", "gone").find(AskKept(tenant="acme"))
    assert ([call.id for call in found], silent) == (["call_1"], ["gone"])


async def test_what_another_gateway_says_of_other_tenants_is_not_shown(bus: Bus) -> None:
    """Whatever it was that made it answer so."""
    region = token(8)

    def answer(_: str, __: object, reply: str) -> None:
        bus.publish_nowait(reply, KeptTold(gateway="g2", calls=(kept_call(tenant="other"),)))

    async with bus.listening({subjects.kept(region, "g2"): answer}):
        assert await exchange(bus, keeping(), region, "g1", "g2").find(AskKept(tenant="acme")) == ([], [])


async def test_what_is_kept_goes_to_the_duties(bus: Bus) -> None:
    """The rest at the end."""
    region, got = token(8), asyncio.Queue[object]()
    keeper = keeping()

    async with bus.listening({subjects.traces(region): lambda _, message, __: got.put_nowait(message)}):
        async with exchange(bus, keeper, region, "g1").running():
            keeper._keep(kept_call())
        async with asyncio.timeout(10):
            assert await got.get() == TraceBatch(gateway="g1", calls=(kept_call(),))


def ordinary(keeper: TraceKeeper, *ids: str, **result: Any) -> None:
    """Calls that end well, and are kept since they are sampled."""
    version = version_record(function_spec("rank", method(), slo=SLO(p95_ms=300.0)), app="shop")
    for call_id in ids:
        call = prepared_call(call_id, version=version, traceparent=SAMPLED_HERE)
        ended = CallResult(output=b"", stages=STAGES, grant=grant(1), **result)
        keeper.call_ended(call, ended, STAGES, 10.0)


def test_ordinary_calls_go_by_what_they_have_in_common() -> None:
    """Which stands in the message once, beside the whole ones; the answer to who asks has them whole."""
    keeper = keeping()
    ordinary(keeper, "call_1")
    keeper._keep(kept_call())
    ordinary(keeper, "call_2")
    batch = keeper.take_unsent(MOST_OF_BATCH)
    assert batch is not None
    (sheet,) = batch.sheets
    told = [each.whole("g1") for each in unpacked(sheet.kinds, sheet.records)]
    assert (batch.calls, len(sheet.kinds), [each.id for each in told]) == ((kept_call(),), 1, ["call_1", "call_2"])
    assert kept_of(keeper, AskKept(tenant="acme", kept="sampled")) == told[::-1]
    assert kept_of(keeper, AskKept(tenant="acme", call_id="call_1")) == told[:1]
    assert kept_of(keeper, AskKept(tenant="acme", function="acme:shop.other")) == []


async def test_all_that_waits_is_sent_and_a_bus_that_is_down_costs_one_message() -> None:
    """Some thousand calls a second may be kept."""
    keeper, bus = keeping(), SmallBus(2**20)
    ordinary(keeper, *[f"call_{number}" for number in range(3 * MOST_OF_BATCH)])
    one = TraceExchange(cast("Bus", bus), keeper, lambda: (), region="r", gateway="g")
    bus.is_down = True
    assert not one._send()
    bus.is_down = False
    more = [one._send() for _ in range(3)]
    assert more == [True, True, False]
    batches = [batch for batch in bus.sent if isinstance(batch, TraceBatch)]
    assert sum([sheet.count for batch in batches for sheet in batch.sheets]) == 2 * MOST_OF_BATCH


def test_an_answer_has_what_was_asked_for() -> None:
    """By function and by reason; and no more than fits a message."""
    keeper = keeping("call_1", "call_2")
    keeper.calls.add(kept_call(id="call_3", function="acme:shop.other"))
    assert [call.id for call in kept_of(keeper, AskKept(tenant="acme", function="acme:shop.rank"))] == [
        "call_2",
        "call_1",
    ]
    assert kept_of(keeper, AskKept(tenant="acme", kept="error")) == []
    assert len(kept_of(keeper, AskKept(tenant="acme", kept="slow", limit=1))) == 1
    many = keeping(*(f"call_{number}" for number in range(300)))
    assert len(kept_of(many, AskKept(tenant="acme", limit=2**30))) == MOST_ASKED


class SmallBus:
    """A bus whose messages have at most so many bytes."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.sent: list[TraceBatch | KeptTold] = []
        self.is_down = False

    def publish_nowait(self, _: str, message: TraceBatch | KeptTold) -> None:
        if self.is_down:
            raise BusDown("It is away.")
        if len(encode(message)) > self.most:
            raise MessageTooLarge("It does not fit.")
        self.sent.append(message)


def test_what_functions_name_makes_no_message_that_is_too_large() -> None:
    """Units with long names, reasons of many attempts: the batch goes in parts, and ends no gateway."""
    keeper = keeping()
    units = {f"{number}{'x' * 1_000}": 1 for number in range(16)}
    for number in range(8):
        keeper._keep(kept_call(id=f"call_{number}", arrived_ns=number, units=units if number != 3 else {}))
    bus = SmallBus(40_000)
    one = TraceExchange(cast("Bus", bus), keeper, lambda: (), region="r", gateway="g")
    one._send()
    assert [call.id for batch in bus.sent for call in batch.calls] == [f"call_{number}" for number in range(8)]
    assert len(bus.sent) > 1

    bus.sent.clear()
    one._on_ask("", AskKept(tenant="acme"), "reply")
    (told,) = bus.sent
    assert [call.id for call in told.calls] == ["call_7", "call_6"]
    bus.most, bus.sent = 10_000, []
    one._on_ask("", AskKept(tenant="acme"), "reply")
    assert [batch.calls for batch in bus.sent] == [()]
    for number in range(2, 5):
        keeper._keep(kept_call(id=f"call_{number}", units=units if number != 3 else {}))
    bus.sent.clear()
    one._send()
    assert [call.id for batch in bus.sent for call in batch.calls] == ["call_3"]


def test_nor_does_what_nodes_say_of_batches() -> None:
    """A sheet is full before it is too large for a message; one that is all the same is not sent, and harms none."""
    keeper, bus = keeping(), SmallBus(100_000)
    ordinary(keeper, *[f"call_{number}" for number in range(200)], mates=("x" * 64,) * 32)
    one = TraceExchange(cast("Bus", bus), keeper, lambda: (), region="r", gateway="g")
    assert one._send()
    assert sum([sheet.count for batch in bus.sent if isinstance(batch, TraceBatch) for sheet in batch.sheets]) == 200
    ordinary(keeper, "call_x", mates=("x" * 64,) * 32)
    keeper._keep(kept_call())
    bus.most, bus.sent = 1_000, []
    assert one._send()
    assert [(batch.calls, batch.sheets) for batch in bus.sent if isinstance(batch, TraceBatch)] == [
        ((kept_call(),), ())
    ]
