"""Messages about limits, between gateways with calls and the home of a tenant's limits.

All limits of a tenant have one home: that of its name's shard. All items for one gateway from one turn of the event
loop travel as one message.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from pilotlight_core.model.messages.message import Message


class LimitAskKind(IntEnum):
    CALL = 0  # all of them
    SUBMISSION = 1  # the rate of requests: a job is stored to run later
    START = 2  # cost and concurrency: a stored job begins
    TOKENS = 3  # the rate of tokens: a call that was let in has been read. Asked where such a limit is set
    MONEY = 4  # the budgets: a call that was let in has been read. Asked where there is one


class LimitAsk(msgspec.Struct, frozen=True, array_like=True):
    """Ask whether a call may begin."""

    number: int
    """Rises with every ask of the gateway; with the gateway's name it identifies the call's permit."""
    tenant: str
    function: str
    """`tenant:app.function`."""
    cost: float = 0.0
    """GPU-milliseconds; tokens, where those are asked for."""
    part: LimitAskKind = LimitAskKind.CALL
    worst: int = 0
    """Nano-dollars that it costs at most, where money is asked for."""
    likely: int = 0
    """What nearly all calls like it cost."""
    key: str = ""
    """The id of the API key that asks for it."""
    seconds: float = 0.0
    """After so many it can have cost `worst`; 0.0: nobody knows."""


class LimitEnd(msgspec.Struct, frozen=True, array_like=True):
    """An admitted call has ended."""

    number: int
    tenant: str
    function: str
    correction: float = 0.0
    """Actual cost minus the estimate."""
    tokens: float = 0.0
    """Actual tokens minus the estimate."""
    spent: int = 0
    """Nano-dollars that it cost, of a call that has asked for money; `UNKNOWN_COST`: nobody knows."""


UNKNOWN_COST = -1


class LimitVerdict(IntEnum):
    GRANTED = 0
    REFUSED = 1  # a limit is reached
    NOT_HOME = 2  # the receiver is not the home (any more)
    SETTLING = 3  # a new home does not know yet which calls run


class BudgetShortage(msgspec.Struct, frozen=True, array_like=True):
    """The budget that refuses a call. Nano-dollars."""

    budget: str
    """Its id."""
    amount: int
    spent: int
    reserved: int
    """For calls that run."""
    left: int
    asked: int = 0
    function: str = ""
    key: str = ""
    period: str = ""
    resets_at: float = 0.0
    """Unix seconds; 0.0: never."""


class LimitAnswer(msgspec.Struct, frozen=True, array_like=True):
    number: int
    verdict: LimitVerdict
    epoch: int = 0
    wait_s: float = 0.0
    """If refused: seconds after which it would be granted."""
    violated: tuple[str, ...] = ()
    standing: str = ""
    """What is left of each policy: the value of the RateLimit header."""
    charged: float = 0.0
    holds: bool = False
    """Whether the call holds a permit, by the limits as the home knows them, until its end is reported."""
    shortage: BudgetShortage | None = None
    """Where money was asked for, and refused."""


class ToLimitHome(Message, frozen=True, kw_only=True):
    gateway: str
    """The process that asks."""
    asks: tuple[LimitAsk, ...] = ()
    ends: tuple[LimitEnd, ...] = ()


class LimitAnswers(Message, frozen=True, kw_only=True):
    gateway: str
    answers: tuple[LimitAnswer, ...]


class HeldPermits(msgspec.Struct, frozen=True, array_like=True):
    """The running calls of a tenant to a function."""

    tenant: str
    function: str
    numbers: tuple[int, ...]
    worst: tuple[int, ...] = ()
    """Of calls that hold money: what each may cost, in nano-dollars, as in its ask. Empty: they hold permits."""
    likely: tuple[int, ...] = ()
    key: str = ""
    """The API key of those that hold money."""


class Holdings(Message, frozen=True, kw_only=True):
    """All running calls of a gateway in one shard: sent on request, after a loss of connection, and now and then.

    The home adds permits that it lacks, and releases those of `gateway` up to `upto` that are neither held nor pending.
    """

    gateway: str
    shard: int
    epoch: int
    upto: int
    """The highest number given out so far."""
    held: tuple[HeldPermits, ...] = ()
    pending: tuple[int, ...] = ()
    """Asks without an answer yet."""


class HoldingsWanted(Message, frozen=True, kw_only=True):
    """Ask all gateways for their holdings, because a new home has begun."""

    home: str
    shards: dict[int, int]
    """shard -> epoch"""
