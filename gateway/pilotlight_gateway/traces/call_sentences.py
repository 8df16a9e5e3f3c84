"""A kept call in sentences: what took longest, what it waited for and why, what was tried, and why it was refused.

Plain functions. What only the function's owner may know, such as why its containers end, is said to it alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from pilotlight_core.model.errors import CODES
from pilotlight_core.model.tracing.kept_call import WELL, KeptAttempt, KeptCall, KeptWhy
from pilotlight_gateway.traces.call_segments import attempts_of, segments_of

NOTABLE = 0.1
"""A part of a call that took less of its time is not spoken of."""
MOST_STEPS = 3
"""Steps of a start that are named, the longest first."""
REFUSED = frozenset({
    "queue_full", "rate_limited", "no_capacity", "breaker_open", "starting", "draining", "overloaded",
    "budget_exhausted", "quota_exceeded", "misconfigured", "too_many_tokens", "too_large", "nested_refused",
})  # fmt: skip
"""Codes of calls that the platform did not take."""
KEPT = {
    KeptWhy.SLOW: "It is kept since it took longer than {slow}.",
    KeptWhy.ASKED: "It is kept since its caller's traceparent asked for it.",
    KeptWhy.SAMPLED: "It is kept as one of those that are sampled.",
}
PARTS = {
    "gateway": "reading and checking the request",
    "preprocess": "the @preprocess() hook, with its wait",
    "queue": "waiting for room in a container",
    "start": "waiting for a container to start",
    "transport": "the way to the container and back",
    "batch_wait": "waiting for its batch to fill",
    "execute": "the function's own code",
    "postprocess": "the @postprocess() hook, with its wait",
    "respond": "writing the answer",
}
MEANS = {
    "batch_wait": "A smaller wait_ms of the batch shortens that, at the price of smaller batches.",
    "transport": "Large inputs and answers make that longer.",
    "gateway": "Large or deep inputs make that longer, and so does a gateway that has much to do.",
    "respond": "Large answers make that longer, and so does a client that reads slowly.",
}
"""What can be done about a part that took long."""
TURNED_AWAY = {
    "stale_epoch": "another gateway had become the home of its function",
    "no_slot": "the container had no room left",
    "draining": "the container was being ended",
    "gone": "the container was gone",
    "expired": "it had no time left to start",
    "unreadable": "its input could not be fetched",
}
"""Why a container did not take a call."""


def sentences_of(call: KeptCall, *, is_owner: bool) -> list[str]:
    """What is to be said of a call, the most important first."""
    return list(_sentences(call, is_owner=is_owner))


def longest_part(call: KeptCall) -> tuple[str, float]:
    """What took longest of a call, over all its attempts, and its milliseconds."""
    sums: dict[str, float] = {}
    for segment in segments_of(call):
        sums[segment.name] = sums.get(segment.name, 0.0) + segment.ms
    return max(sums.items(), key=lambda item: item[1], default=("", 0.0))


def _sentences(call: KeptCall, *, is_owner: bool) -> Iterator[str]:
    what = call.ref or call.function.partition(":")[2] or "The request"
    took = text_of(call.total_ms)
    if not call.code:
        yield f"{what} took {took} and ended well."
    elif call.code in REFUSED:
        yield f"{what} was refused with {call.code} after {took}."
    else:
        yield f"{what} failed with {call.code} after {took}."
    if call.detail:
        yield call.detail
    yield from _refusal(call)
    if call.kept in KEPT:
        yield KEPT[call.kept].format(slow=text_of(call.slow_ms))
    if call.stages and (call.code not in REFUSED or call.attempts or call.cold_start):
        yield from _parts(call, is_owner=is_owner)
    yield from _attempts(call, is_owner=is_owner)
    if call.parent:
        yield f"It was made by the call {call.parent}."


def _refusal(call: KeptCall) -> Iterator[str]:
    if call.limits:
        yield f"It ran into the limit of {' and '.join(call.limits)}."
    if call.retry_after:
        yield f"After {text_of(call.retry_after * 1000.0)} another try might have succeeded."
    if call.code:
        meaning = CODES.get(call.code)
        if meaning is not None:
            yield f"What to do: {meaning.advice}"


def _parts(call: KeptCall, *, is_owner: bool) -> Iterator[str]:
    """The longest part, and the others that took a notable part of the time."""
    sums: dict[str, float] = {}
    for segment in segments_of(call):
        sums[segment.name] = sums.get(segment.name, 0.0) + segment.ms
    total = max(call.total_ms, 1e-9)
    ordered = sorted(sums.items(), key=lambda item: -item[1])
    for index, (name, ms) in enumerate(ordered):
        if index and ms < NOTABLE * total:
            break
        lead = "What took longest was" if not index else "Then came"
        yield f"{lead} {PARTS.get(name, name)}: {text_of(ms)}, {ms / total:.0%} of it."
        yield from _why(call, name, is_owner=is_owner)


def _why(call: KeptCall, part: str, *, is_owner: bool) -> Iterator[str]:
    if part == "start":
        steps = sorted((call.cold_start or {}).items(), key=lambda item: -item[1])[:MOST_STEPS]
        named = ", ".join(f"{name} took {text_of(ms)}" for name, ms in steps if ms >= 1.0)
        of_it = f"; of its start {named}" if named else ""
        yield (
            f"No container was ready, so it waited for one{of_it}. min_containers keeps one ready, and a longer "
            "scaledown_window keeps one longer."
        )
    elif part == "queue":
        # How much others have in the queue is the owner's to know.
        ahead = max((one.ahead for one in attempts_of(call)), default=0) if is_owner else 0
        behind = f" behind {ahead} {'call' if ahead == 1 else 'calls'} that had come before" if ahead else ""
        yield (
            f"All containers were busy, so it waited{behind}. More containers (max_containers, buffer_containers) or "
            "more calls at a time in each (concurrent, batched) shorten that."
        )
    elif part == "batch_wait":
        yield f"Its batch had {call.batch_size} {'call' if call.batch_size == 1 else 'calls'}. {MEANS[part]}"
    elif part == "execute" and call.batch_size > 1:
        yield f"It ran in a batch of {call.batch_size}."
    elif part in MEANS:
        yield MEANS[part]


def _attempts(call: KeptCall, *, is_owner: bool) -> Iterator[str]:
    tried = [one for one in call.attempts if one.outcome]
    if len(tried) < 2 and all(one.outcome == WELL for one in tried):
        return
    for number, one in enumerate(tried, 1):
        ms = sum((one.queue, one.start, one.transport, one.batch_wait, one.execute))
        where = f" in {one.container}" if is_owner and one.container else ""
        yield f"Attempt {number}{where} {_ended(one, is_owner=is_owner)} after {text_of(ms)}."


def _ended(one: KeptAttempt, *, is_owner: bool) -> str:
    because = f" ({one.reason})" if one.reason and is_owner else ""
    if one.outcome == WELL:
        return "ended well"
    if not one.started:
        return f"never began: {TURNED_AWAY.get(one.outcome, one.outcome)}{because}, and ended"
    if one.outcome == "lost":
        return f"was lost with its container or node{because}"
    return f"ended with {one.outcome}{because}"


def text_of(ms: float) -> str:
    """Milliseconds as people read them."""
    if ms >= 60_000.0:
        return f"{ms / 60_000.0:.1f} min"
    if ms >= 1_000.0:
        return f"{ms / 1_000.0:.2f} s"
    return f"{ms:.0f} ms" if ms >= 10.0 else f"{ms:.1f} ms"
