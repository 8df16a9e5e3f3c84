"""What bounds calls on their way: the gateway's thread, the bytes of bodies, and the container's processors."""

from __future__ import annotations

import math

from pilotlight_gateway.diagnosis.call_samples import with_stages
from pilotlight_gateway.diagnosis.diagnosis_case import COMFORTABLE, HIGH, DiagnosisCase
from pilotlight_gateway.diagnosis.diagnosis_window import (
    BATCH_WAIT,
    EXECUTE,
    GATEWAY,
    QUEUE,
    RESPOND,
    TRANSPORT,
    StageTimes,
)
from pilotlight_gateway.diagnosis.suspects import CallTrouble, Cure, CureCost, Promise, Suspect
from pilotlight_gateway.diagnosis.wait_model import wait_factor

LARGE_BODY = 64_000
"""Bytes of one call, both ways: beneath, no body is what keeps a call."""


def gateway_bound(case: DiagnosisCase) -> Suspect | None:
    """The thread of a gateway is busy nearly all the time."""
    window, loop = case.window, case.loop
    if loop < COMFORTABLE and not (loop >= 0.5 and case.part_of(GATEWAY, RESPOND) > 0.4):
        return None
    after = 0.0 if loop > 0.98 else (1 - loop) / (1 - loop / 2)

    def relieved(stages: StageTimes) -> StageTimes:
        return with_stages(stages, {GATEWAY: stages[GATEWAY] * after, RESPOND: stages[RESPOND] * after})

    then, gains = case.after(relieved)
    idle = case.busy < COMFORTABLE
    gains |= {CallTrouble.RATE: 0.9 if idle else 0.3, CallTrouble.FULL: 0.6 if idle else 0.2}
    own = case.means[GATEWAY] + case.means[RESPOND]
    return Suspect(
        name="gateway",
        gains=gains,
        says=(
            f"Gateway-bound: its thread is busy {loop:.0%} of the time while the {case.devices} of {case.what} are "
            f"busy {case.busy:.0%}."
        ),
        evidence=(
            f"gateway and respond take {own:.3g} ms of {case.mean_ms:.3g} ms a call",
            f"{case.rho:.0%} of what the {case.devices} can do is asked for",
            f"bodies are {window.body_bytes / 1e6:.2g} MB a call",
        ),
        cures=(
            Cure(
                cost=CureCost.SETTING,
                what=f"a gateway more, {window.gateways + 1} in all",
                changes={"gateways": float(window.gateways + 1)},
            ),
            Cure(cost=CureCost.CALLER, what="send fewer, larger calls: batches, or several inputs in one"),
        ),
        promises=(
            Promise(metric="p95_ms", value=then, tolerance=0.5, at_most=True),
            Promise(
                metric="loop_part", value=min(loop, 0.99) * window.gateways / (window.gateways + 1), tolerance=0.3,
                at_most=True,
            ),
        ),
        change=relieved,
    )  # fmt: skip


def payload_bound(case: DiagnosisCase) -> Suspect | None:
    """Bodies keep the way to containers, or from callers, busy."""
    window, link = case.window, case.link
    slow_way = case.part_of(TRANSPORT) > 0.4
    slow_read = case.part_of(GATEWAY, RESPOND) > 0.4 and case.loop < 0.5 and window.loop_part is not None
    if not (link >= 0.5 or slow_way or slow_read) or window.body_bytes < LARGE_BODY:
        return None
    part = 0.5 if link < 0.5 else 0.25
    own_ms = 1000 * link / max(1e-9, window.rate) if link >= HIGH else math.inf  # of one call on the link
    wait = case.wait_ms(case.ready) if link >= HIGH else math.inf  # slots are held by what is on its way

    def halved(stages: StageTimes) -> StageTimes:
        new = {TRANSPORT: min(stages[TRANSPORT] * part, own_ms), QUEUE: min(stages[QUEUE], wait)}
        if slow_read:
            new |= {GATEWAY: stages[GATEWAY] * part, RESPOND: stages[RESPOND] * part}
        return with_stages(stages, new)

    then, gains = case.after(halved)
    busy = f" keep the link busy {link:.0%} of the time, and" if window.link_part is not None else ":"
    promises = [Promise(metric="p95_ms", value=then, tolerance=0.6, at_most=True)]
    if window.link_part is not None:
        promises.insert(0, Promise(metric="link_part", value=link / 2, tolerance=0.2, at_most=True))
    where = "reading and answering are" if slow_read and not slow_way else "transport is"
    way = case.part_of(GATEWAY, RESPOND) if slow_read and not slow_way else case.part_of(TRANSPORT)
    return Suspect(
        name="payload",
        gains=gains | {CallTrouble.RATE: 0.6 if link >= 0.5 else 0.4},
        says=(
            f"Payload-bound: bodies of {window.body_bytes / 1e6:.2g} MB to {case.what}{busy} {where} {way:.0%} of a "
            "call."
        ),
        evidence=(f"{case.devices} busy {case.busy:.0%}, gateway {case.loop:.0%} of its thread",),
        cures=(
            Cure(
                cost=CureCost.CALLER,
                what="send half the bytes: compress, crop, or pass a reference to where the data lies",
                changes={"bytes_factor": 0.5},
            ),
            Cure(cost=CureCost.HARDWARE, what="a faster link"),
        ),
        promises=tuple(promises),
        change=halved,
    )


def cpu_bound(case: DiagnosisCase) -> Suspect | None:
    """Containers hold a device while their processors work: pre-processing while GPUs idle."""
    window, part = case.window, case.cpu_part
    if part < 0.5 or (window.device_part is not None and window.device_part > 0.6):
        return None
    throttled = (window.throttled_s or 0.0) / max(1e-9, window.busy_s or 0.0)
    left = 1 - part
    wait = case.took_ms * left * wait_factor(case.ready, min(0.99, case.rho * left))

    def apart(stages: StageTimes) -> StageTimes:
        return with_stages(
            stages,
            {QUEUE: min(stages[QUEUE], wait), BATCH_WAIT: min(stages[BATCH_WAIT], max(window.wait_ms, case.took_ms))},
        )

    def faster(stages: StageTimes) -> StageTimes:
        return with_stages(apart(stages), {EXECUTE: stages[EXECUTE] * (1 - throttled)})

    change = faster if throttled >= 0.2 else apart
    then, gains = case.after(change)
    if case.busy < COMFORTABLE and case.rho < HIGH and throttled < 0.2:
        gains = dict.fromkeys(gains, 0.0)  # nobody waits for what the device does not do
    more = max(2, round(2 * window.cores))
    cures = [
        Cure(
            cost=CureCost.VERSION,
            what="a preprocess hook for it, which runs in containers of its own without a GPU",
            changes={"cpu_part_factor": 0.0},
        ),
    ]
    promises = [
        Promise(metric="gpu_ms_per_call", value=case.took_ms / case.size * left, tolerance=0.35, at_most=True),
        Promise(metric="p95_ms", value=then, tolerance=0.6, at_most=True),
    ]
    if throttled >= 0.2:
        cures.insert(
            0,
            Cure(
                cost=CureCost.VERSION,
                what=f"cpu={more}: it is kept from processors {throttled:.0%} of the time in which it runs calls",
                changes={"cores": float(more)},
            ),
        )
        promises = [Promise(metric="p95_ms", value=then, tolerance=0.6, at_most=True)]
    idle = f"the device computes {window.device_part:.0%} of the time" if window.device_part is not None else ""
    return Suspect(
        name="cpu",
        gains=gains | {CallTrouble.FULL: 0.9, CallTrouble.RATE: 0.8},
        says=(
            f"CPU-bound: {part:.0%} of the time in which containers of {case.what} run calls their processors work, "
            f"and their {case.devices} wait for them."
        ),
        evidence=tuple(
            line
            for line in (
                (
                    f"{window.guest_cpu_s or 0:.3g} s of processors in {window.busy_s or 0:.3g} s of calls, "
                    f"{window.cores:g} cores each"
                ),
                idle,
                f"{case.devices} are busy {case.busy:.0%} by the meter, which bills them meanwhile",
            )
            if line
        ),
        cures=tuple(cures),
        promises=tuple(promises),
        change=change,
    )
