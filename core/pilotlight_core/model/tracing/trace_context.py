"""Which trace a call belongs to: W3C's Trace Context, level 2.

    traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
                 |  |                                |                 flags: 01 sampled, 02 the trace id is random
                 |  trace id                         parent: the span that this one is below
                 version

With it comes a tracestate, what vendors on the way know of the trace: it is passed on as it came, or not at all. Inside
the platform both are one text, the traceparent and, where there is one, a space and the tracestate behind it, so that
neither goes anywhere without the other.

A call that came without one begins a trace of its own, whose id is made of the call's: who knows the one knows the
other. So nothing is drawn, sent or kept for the calls of which no trace is wanted, which are nearly all of them, and
every process finds the same ids. The ids of spans are made of the call's too, for the same reason. Where its trace is
sampled, two characters say so in the place of a traceparent (`SAMPLED_HERE`), and all else follows.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import NamedTuple

SAMPLED = 0b01
RANDOM = 0b10
"""The last 56 bits of the trace id are random (level 2), so that samplers may decide by them."""
TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
LENGTH = 55
STATE_MEMBER = re.compile(r"[a-z0-9][a-z0-9_\-*/@]{0,255}=[ -+\--<>-~]{0,255}[!-+\--<>-~]")
LONGEST_STATE, MOST_MEMBERS = 512, 32
"""Of a tracestate: bytes, and vendors. Longer ones are not passed on."""
OWN_VENDOR = "ot="
"""Where the member begins in which OpenTelemetry's samplers say how many calls one stands for."""
LONGEST_HEADER = 512
NO_TRACE, NO_SPAN = "0" * 32, "0" * 16
INVALID_VERSION = "ff"
TOKEN = 20
"""Digits at the end of a call's id, in base 36: the second of its making, and 67 random bits."""
MIXER = 0x9E3779B97F4A7C15F39CC0605CEDC835
"""An odd number: multiplied by it modulo 2**128 no two ids become one, and the upper bits are filled."""
SPAN_MIXER = 0xD1342543DE82EF95F2B8D9F9A3C1E0B7
"""Another one, for the ids of spans."""
SPAN_STEP = 0x9E3779B97F4A7C15
"""From one span of a call to the next: odd, so no two of its spans have one id."""
MASK_128, MASK_64, MASK_56 = 2**128 - 1, 2**64 - 1, 2**56 - 1
ROOT, EXECUTE, OTHERS = 0, 1, 2
"""The places of spans that other processes name: that of the whole call, and that of the function's code. From the
third on they are of whoever tells of the others."""
SAMPLED_HERE = "03"
"""In the place of a traceparent: the call begins a trace, and is sampled. These are its flags; its id has the rest."""


class TraceContext(NamedTuple):
    """One traceparent."""

    trace_id: str
    span_id: str
    flags: int
    state: str = ""
    """The tracestate; "": there is none."""

    @property
    def sampled(self) -> bool:
        return bool(self.flags & SAMPLED)

    @property
    def header(self) -> str:
        """As it is sent."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags:02x}"

    @property
    def text(self) -> str:
        """As it is passed on inside the platform, with its tracestate."""
        return f"{self.header} {self.state}" if self.state else self.header


def parse_traceparent(text: str) -> TraceContext | None:
    """What a traceparent says, with the tracestate behind it; None: it is none, and whoever got it begins a new
    trace.
    """
    text, _, state = text.partition(" ")
    found = TRACEPARENT.match(text[:LENGTH])
    if found is None:
        return None
    version, trace_id, span_id, flags = found.groups()
    if version == INVALID_VERSION or trace_id == NO_TRACE or span_id == NO_SPAN:
        return None
    # A later version may have more behind another hyphen; of this one nothing may follow.
    if len(text) != LENGTH and (version == "00" or text[LENGTH] != "-"):
        return None
    return TraceContext(trace_id, span_id, int(flags, 16) & (SAMPLED | RANDOM), state)


def is_sampled(traceparent: str) -> bool:
    """Whether a call's trace is, by what it carries."""
    if not traceparent or traceparent == SAMPLED_HERE:
        return bool(traceparent)
    found = parse_traceparent(traceparent)
    return found is not None and found.sampled


def trace_text(header: bytes, state: bytes = b"") -> str:
    """What the headers traceparent and tracestate say, as it is passed on; "": there is no traceparent that is valid.

    A tracestate that is malformed or too long is left out whole, and one without a traceparent means nothing.
    """
    if not header or b" " in header:
        return ""
    found = parse_traceparent(header[:LONGEST_HEADER].decode("latin-1"))
    if found is None:
        return ""
    return found._replace(state=valid_state(state)).text if state else found.header


def valid_state(header: bytes) -> str:
    """A header's tracestate, as it is passed on; "": it has none that is valid."""
    if len(header) > LONGEST_STATE:
        return ""
    members = [one for each in header.decode("latin-1").split(",") if (one := each.strip(" \t"))]
    if len(members) > MOST_MEMBERS or not all(STATE_MEMBER.fullmatch(one) for one in members):
        return ""
    names = {one.partition("=")[0] for one in members}
    return ",".join(members) if len(names) == len(members) else ""


def sampled_state(state: str, threshold: str) -> str:
    """A tracestate with OpenTelemetry's threshold of sampling at its beginning, where whoever changes one writes."""
    others = [one for one in state.split(",") if one and not one.startswith(OWN_VENDOR)]
    return ",".join([f"{OWN_VENDOR}th:{threshold}", *others[: MOST_MEMBERS - 1]])


def number_of(call_id: str) -> int:
    """The number that a call's id has at its end; its last 56 bits are random."""
    try:
        return int(call_id[-TOKEN:], 36)
    except ValueError:  # it is not one of the platform's
        return int.from_bytes(blake2b(call_id.encode(), digest_size=16).digest(), "big")


def randomness_of(call_id: str) -> int:
    """The last 56 bits of the trace id of a call that begins a trace: samplers decide by them."""
    return number_of(call_id) & MASK_56


def own_trace_id(call_id: str) -> str:
    """The trace that a call begins that came without one."""
    return f"{trace_number(number_of(call_id)):032x}"


def trace_number(number: int) -> int:
    """The same as a number, of that in a call's id."""
    return (number * MIXER & MASK_128) >> 56 << 56 | number & MASK_56


def trace_id_of(call_id: str, traceparent: str = "") -> str:
    """The trace of a call that came with this `traceparent`; "": with none."""
    came = parse_traceparent(traceparent) if traceparent else None
    return own_trace_id(call_id) if came is None else came.trace_id


def span_id_of(call_id: str, place: int) -> str:
    """The id of one of a call's spans, by its place among them."""
    return span_number(number_of(call_id), place).to_bytes(8, "little").hex()


def span_number(number: int, place: int) -> int:
    """The same as a number, of that in a call's id, the lowest byte first."""
    return ((number * SPAN_MIXER & MASK_128) >> 64) + place * SPAN_STEP & MASK_64


def root_context(call_id: str, *, sampled: bool) -> TraceContext:
    """That of a call which begins a trace: below its own root span."""
    return TraceContext(own_trace_id(call_id), span_id_of(call_id, ROOT), RANDOM | (SAMPLED if sampled else 0))


def context_within(call_id: str, traceparent: str) -> TraceContext:
    """What the code of a call sees, and the calls that it makes: they are below the span of its execution.

    `traceparent`: as the call came; "": it begins a trace, of which no spans are wanted.
    """
    if traceparent == SAMPLED_HERE:
        return TraceContext(own_trace_id(call_id), span_id_of(call_id, EXECUTE), RANDOM | SAMPLED)
    came = parse_traceparent(traceparent) if traceparent else None
    if came is None:
        return TraceContext(own_trace_id(call_id), span_id_of(call_id, EXECUTE), RANDOM)
    return TraceContext(came.trace_id, span_id_of(call_id, EXECUTE), came.flags, came.state)
