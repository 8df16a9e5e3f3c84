"""What gateways say to each other about limits: those that have calls, and the home of a tenant's limits.

A tenant's limits all have one home: that of the shard its name falls into. Whatever one gateway has for another in one
turn of the event loop is one message.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from pilotlight_core.model.messages.agent_messages import Message


class LimitAskKind(IntEnum):
    """What of its tenant's limits an ask is about."""

    CALL = 0  # all of them
    SUBMISSION = 1  # the rates of requests: a job is stored, and runs later
    START = 2  # cost and concurrency: a job that was stored begins


class LimitAsk(msgspec.Struct, frozen=True, array_like=True):
    """May this call begin?"""

    number: int
    """Rises with every ask of the gateway; with the gateway's name it is the call's permit."""
    tenant: str
    function: str
    """`tenant:app.function`."""
    cost: float = 0.0
    """Estimated, in GPU-milliseconds."""
    part: LimitAskKind = LimitAskKind.CALL


class LimitEnd(msgspec.Struct, frozen=True, array_like=True):
    """A call that was let in has ended."""

    number: int
    tenant: str
    function: str
    correction: float = 0.0
    """What it cost beyond the estimate; negative: less."""


class LimitVerdict(IntEnum):
    """What became of an ask."""

    GRANTED = 0
    REFUSED = 1  # a limit is reached
    NOT_HOME = 2  # whoever was asked is not the home (any more)
    SETTLING = 3  # the home has just begun and does not know yet which calls run


class LimitAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The answer to one ask."""

    number: int
    verdict: LimitVerdict
    epoch: int = 0
    """Of the home."""
    wait_s: float = 0.0
    """Seconds after which it would be granted, if refused."""
    violated: tuple[str, ...] = ()
    """The names of the policies that refuse."""
    standing: str = ""
    """What is left of each: the value of the RateLimit header."""
    charged: float = 0.0
    """The cost that was counted."""
    holds: bool = False
    """The call holds a permit, by the limits as the home knows them, until its end is told."""


class ToLimitHome(Message, frozen=True, kw_only=True):
    """What one gateway has for a home of limits."""

    gateway: str
    """The process that asks."""
    asks: tuple[LimitAsk, ...] = ()
    ends: tuple[LimitEnd, ...] = ()


class LimitAnswers(Message, frozen=True, kw_only=True):
    """What a home answers."""

    gateway: str
    """The home's process."""
    answers: tuple[LimitAnswer, ...]


class HeldPermits(msgspec.Struct, frozen=True, array_like=True):
    """The calls of a tenant to a function that were let in and run."""

    tenant: str
    function: str
    numbers: tuple[int, ...]


class Holdings(Message, frozen=True, kw_only=True):
    """All calls of a gateway that run in one shard: sent when asked, after a loss of connection, and now and then.

    A home takes from it what it has not known, and lets go of what it thought was running: permits of `gateway` up to
    `upto` that are neither held nor pending.
    """

    gateway: str
    shard: int
    epoch: int
    """Of the home that it is for."""
    upto: int
    """The highest number given out so far."""
    held: tuple[HeldPermits, ...] = ()
    pending: tuple[int, ...] = ()
    """Asked, and not answered yet."""


class HoldingsWanted(Message, frozen=True, kw_only=True):
    """A home has begun: everybody tell it what runs."""

    home: str
    """Its process."""
    shards: dict[int, int]
    """shard -> epoch"""
