"""The encoding of messages and records, which other releases of the platform read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.api.webhook_api import SigningSecret
from pilotlight_core.model.messages import wire
from pilotlight_core.model.messages.call_messages import (
    CallDescriptor,
    Cancel,
    Chunk,
    Ended,
    Grant,
    Outcome,
    Refusal,
    Refused,
    Run,
    Stages,
    Started,
    Window,
)
from pilotlight_core.model.messages.controller_questions import PlacementReply
from pilotlight_core.model.messages.limiting import LimitAnswer, LimitAnswers, LimitVerdict
from pilotlight_core.model.messages.logs import LogBatch, LogLine
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.scheduling import (
    AskCall,
    BreakerReport,
    Breakers,
    BreakerState,
    CallReply,
    Dropped,
    Enqueue,
    HandBack,
    Settle,
    ToHome,
    ToOrigin,
    Withdraw,
)
from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageBatch, UsageEvent
from pilotlight_core.model.records.jobs import JobRecord
from tests.builders.jobs import job

DESCRIPTOR = CallDescriptor(
    call_id="a", tenant="t", version="v", method="", priority="batch", cost=2.0, grant_number=3
)  # fmt: skip
DESCRIPTOR_FIELDS = {
    "call": "a", "tenant": "t", "version": "v", "method": "", "priority": "batch", "cost": 2.0, "age_ms": 0.0,
    "remaining_ms": 0.0, "gateway": "", "function": "", "number": 3, "admitted": False, "weight": 1.0, "tier_rank": 0,
    "reserved": 0.0, "queue_calls": 0, "queue_ms": 0.0, "affinity": None, "split": -1,
}  # fmt: skip
EVENT = UsageEvent(
    id="i.s.1", node="n", device="d", slice="s", ppm=1, price="p", state=LeaseState.BUSY, t0=0, t1=5, ended_at=1.0,
    shares=(CallShare("a", "t", 5),),
)  # fmt: skip

MESSAGES: list[tuple[Message, dict[str, Any]]] = [
    (
        Run(
            call_id="a", tenant="t", version="v", container="c", method="m", epoch=1, grant_number=2, gateway="g",
            home="h", start_within_ms=1.0, timeout_ms=2.0,
        ),
        {
            "type": "Run", "call": "a", "tenant": "t", "version": "v", "container": "c", "method": "m", "epoch": 1,
            "grant": 2, "gateway": "g", "home": "h", "start_within_ms": 1.0, "timeout_ms": 2.0,
        },
    ),
    (Cancel(call_id="a", reason="r"), {"type": "Cancel", "call": "a", "reason": "r"}),
    (Window(call_id="a", upto=4), {"type": "Window", "call": "a", "upto": 4}),
    (
        Refused(call_id="a", grant_number=2, container="c", reason=Refusal.GONE),
        {"type": "Refused", "call": "a", "grant": 2, "container": "c", "reason": "gone"},
    ),
    (Started(call_id="a", grant_number=2), {"type": "Started", "call": "a", "grant": 2}),
    (
        Chunk(call_id="a", grant_number=2, seq=1, data=b"x"),
        {"type": "Chunk", "call": "a", "grant": 2, "seq": 1, "data": b"x"},
    ),
    (
        Ended(call_id="a", grant_number=2, container="c", outcome=Outcome.OK),
        {"type": "Ended", "call": "a", "grant": 2, "container": "c", "outcome": "ok"},
    ),
    (
        ToHome(
            shard=1,
            items=(
                Enqueue(DESCRIPTOR),
                HandBack(call=DESCRIPTOR, container="c", epoch=1, reason=Refusal.NO_SLOT),
                Settle(call_id="a", node="n", container="c", grant_number=2),
                Withdraw("a"),
            ),
        ),
        {
            "type": "ToHome",
            "shard": 1,
            "items": [
                {"type": "Enqueue", "call": DESCRIPTOR_FIELDS},
                {"type": "HandBack", "call": DESCRIPTOR_FIELDS, "container": "c", "epoch": 1, "reason": "no_slot"},
                {
                    "type": "Settle", "call": "a", "node": "n", "container": "c", "number": 2, "cost": None,
                    "frees": True, "outcome": None,
                },
                {"type": "Withdraw", "call": "a"},
            ],
        },
    ),
    (
        ToOrigin(
            granted=(Grant(call_id="a", container="c", node="n", instance="i", epoch=1, grant_number=2),),
            dropped=(Dropped(call_id="b", gateway="g", code="cancelled", detail="d"),),
        ),
        {
            "type": "ToOrigin",
            "granted": [
                {
                    "call": "a", "container": "c", "node": "n", "instance": "i", "epoch": 1, "number": 2, "gateway": "",
                    "home": "", "start_ms": 0.0, "timeline": {}, "ahead": 0,
                }
            ],
            "dropped": [
                {
                    "call": "b", "gateway": "g", "code": "cancelled", "detail": "d", "error": None, "retry_after": None,
                    "limits": [], "version": "",
                }
            ],
        },
    ),
    (AskCall(tenant="t", call_id="a"), {"type": "AskCall", "tenant": "t", "id": "a"}),
    (CallReply(cancelled=True), {"type": "CallTold", "cancelled": True}),
    (PlacementReply(found=False), {"type": "PlacementTold", "found": False}),
    (
        Breakers(gateway="g", reports=(BreakerReport(version="v", state="open", failures=5),)),
        {
            "type": "Breakers",
            "gateway": "g",
            "told": [
                {"version": "v", "container": "", "tenant": "", "state": "open", "failures": 5, "retry_after": 0.0}
            ],
        },
    ),
    (
        Ended(call_id="a", grant_number=2, container="c", outcome=Outcome.OK, stages=Stages(total_ms=2.0)),
        {
            "type": "Ended", "call": "a", "grant": 2, "container": "c", "outcome": "ok",
            "stages": {"total": 2.0},
        },
    ),
    (
        LimitAnswers(gateway="g", answers=(LimitAnswer(1, LimitVerdict.REFUSED, wait_s=0.5),)),
        {"type": "LimitAnswers", "gateway": "g", "answers": [[1, 1, 0, 0.5, [], "", 0.0, False, None]]},
    ),
    (
        LogBatch(lines=(LogLine(1.0, "stdout", "hi", "c", "a"),)),
        {
            "type": "LogBatch",
            "lines": [{"at": 1.0, "stream": "stdout", "text": "hi", "container": "c", "call": "a"}],
        },
    ),
    (
        UsageBatch(events=(EVENT,)),
        {
            "type": "UsageBatch",
            "events": [
                {
                    "id": "i.s.1", "node": "n", "device": "d", "slice": "s", "ppm": 1, "price": "p", "state": "busy",
                    "t0": 0, "t1": 5, "wall": 1.0, "tenant": "", "app": "", "function": "", "version": "",
                    "container": "", "shares": [{"call": "a", "tenant": "t", "ns": 5}],
                    "wall_ns": 0, "purpose": "call", "used": False, "memory": 0, "region": "", "zone": "",
                    "purchase": "", "tags": {}, "core_ppm": 0, "gib_ppm": 0,
                }
            ],
        },
    ),
]  # fmt: skip


@pytest.mark.parametrize(("message", "fields"), MESSAGES, ids=lambda one: type(one).__name__)
def test_a_message_is_encoded_by_its_wire_names(message: Message, fields: dict[str, Any]) -> None:
    """Whatever its fields are called in the code, in their order; and it is read back as it was."""
    data = wire.encode(message)
    decoded = msgspec.msgpack.decode(data)

    assert decoded == fields
    assert list(decoded) == list(fields)
    assert wire.decode(data) == message


def test_records_keep_their_stored_names() -> None:
    """A bucket has records of earlier releases."""
    stored = msgspec.to_builtins(job(grant_number=7))
    assert stored["grant"] == 7
    assert msgspec.convert(stored, JobRecord) == job(grant_number=7)
    handed_over = BreakerState(state="open", failures=5, left_s=2.0)
    assert msgspec.to_builtins(handed_over) == {"state": "open", "failures": 5, "left": 2.0}
    assert msgspec.json.encode(SigningSecret(value="whsec_x", expires_at=5.0)) == b'{"value":"whsec_x","until":5.0}'


@pytest.mark.parametrize("data", [b"", b"\x80", msgspec.msgpack.encode({"type": "Nothing"})])
def test_what_is_no_message_is_refused(data: bytes) -> None:
    """By msgspec's own error, which all readers catch."""
    with pytest.raises(msgspec.DecodeError):
        wire.decode(data)


def test_fields_that_are_not_known_are_ignored() -> None:
    """A newer sender may have added some."""
    assert wire.decode(msgspec.msgpack.encode({"type": "Cancel", "call": "a", "later": 1})) == Cancel(call_id="a")
