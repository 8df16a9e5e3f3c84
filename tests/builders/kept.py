"""A kept call: a cold one of `acme` that ended well after a second, unless a test says more."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.ids import new_call_id
from pilotlight_core.model.tracing.kept_call import WELL, KeptAttempt, KeptCall, KeptWhy
from pilotlight_core.model.tracing.sampled_call import SampledKind, SampledRecord, SampledSheet, SampledTimes
from pilotlight_core.model.tracing.trace_context import own_trace_id
from pilotlight_gateway.traces.open_sheet import KnownKind, OpenSheet

AT_NS = 1_800_000_000 * 10**9
CALL_ID = new_call_id("local", 1, 1_800_000_000.0)
STAGES = {
    "gateway": 10.0, "queue": 40.0, "start": 700.0, "transport": 20.0, "batch_wait": 30.0, "execute": 150.0,
    "respond": 50.0,
}  # fmt: skip
STEPS = {"fetch": 300.0, "import": 200.0, "enter": 400.0}


def kept_call(**more: Any) -> KeptCall:
    """Steps of its start began before it came."""
    attempt = KeptAttempt(
        container="c1", node="n1", outcome=WELL, ahead=3, queue=40.0, start=700.0, transport=20.0, batch_wait=30.0,
        execute=150.0,
    )  # fmt: skip
    fields: dict[str, Any] = {
        "id": CALL_ID, "trace_id": own_trace_id(CALL_ID), "tenant": "acme", "function": "acme:shop.rank",
        "ref": "shop.rank@v3", "version": "ver_3", "kept": KeptWhy.SLOW, "slow_ms": 300.0, "total_ms": 1_000.0,
        "arrived_ns": AT_NS, "stages": STAGES, "cold_start": STEPS, "attempts": (attempt,), "batch_size": 4,
        "gateway": "gw1",
    }  # fmt: skip
    return KeptCall(**fields | more)


def sampled_call(
    id: str = CALL_ID,  # noqa: A002 - the field's name
    *,
    total_ms: float = 12.0,
    stages: tuple[float, float, float, float, float, float] = (0.25, 0.5, 0.0, 0.75, 2.0, 8.0),
    mates: tuple[str, ...] = (),
    **kind: Any,
) -> SampledRecord:
    """An ordinary call of `acme` that was sampled, with these times in gateway, queue, start, transport, batch_wait
    and execute; the rest is of its kind.
    """
    fields: dict[str, Any] = {
        "tenant": "acme", "function": "acme:shop.rank", "ref": "shop.rank@v3", "version": "ver_3", "method": "run",
        "priority": "standard", "threshold": "fd7", "slow_ms": 300.0, "container": "c1", "node": "n1", "batch_size": 4,
    }  # fmt: skip
    return SampledRecord(SampledKind(**fields | kind), SampledTimes(id, AT_NS, total_ms, *stages, 2, mates))


def written(sheet: OpenSheet, *calls: SampledRecord) -> OpenSheet:
    """A sheet to which these were written as well."""
    known: dict[SampledKind, KnownKind] = {}
    for call in calls:
        kind, times = call.kind, call.times
        stages = {name: getattr(times, name) for name in STAGES if name != "respond"}
        same = known.setdefault(kind, KnownKind(kind))
        sheet.write(same, times.id, times.arrived_ns, times.total_ms, stages, times.ahead, times.mates)
    return sheet


def sheet_of(*calls: SampledRecord) -> SampledSheet:
    """These, as they are sent."""
    return written(OpenSheet("acme", 1), *calls).take()
