"""The money of a call that runs, or of one of its steps: what was asked for, and what budgets hold for it.

One object from the question to the end, since each call makes one: where the home is in the same process it keeps this
very object, and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.limiting import LimitAsk, LimitAskKind
from pilotlight_core.model.money.budgets import NEVER_ENDS

TellEnd = Callable[["CallMoney", int | None], None]
"""Tells the home what was spent; None: nobody knows."""


class MoneyHolder(Protocol):
    """A budget that keeps money for calls that run."""

    def settle(self, money: CallMoney, spent: int | None, at: float) -> None:
        """A call has ended, and cost so many nano-dollars; None: nobody knows."""
        ...


class CallMoney:
    """Who let it in calls `end` exactly once."""

    __slots__ = (
        "_tell", "error", "function", "key", "likely", "number", "purses", "seconds", "since", "tenant", "worst",
    )  # fmt: skip

    def __init__(
        self, tenant: str, function: str, key: str, worst: int, likely: int, seconds: float, number: int = 0
    ) -> None:
        self.tenant = tenant
        self.function = function
        """`tenant:app.function`."""
        self.key = key
        """The id of the API key that asks for it."""
        self.worst = worst
        """Nano-dollars that it costs at most."""
        self.likely = likely
        """What nearly all calls like it cost."""
        self.seconds = seconds
        """After so many it can have cost `worst`; 0.0: nobody knows, and none of the ledger's is taken for its."""
        self.number = number
        """Of the ask that was answered; 0: it was not asked yet."""
        self.since = NEVER_ENDS
        """The unix seconds at which the home let it in."""
        self.purses: tuple[MoneyHolder, ...] = ()
        """At the home: those that hold it."""
        self.error: PilotlightError | None = None
        """Why the call may not begin; None: it may."""
        self._tell: TellEnd | None = None

    def ask(self) -> LimitAsk:
        """What a home elsewhere is asked."""
        return LimitAsk(
            self.number, self.tenant, self.function, 0.0, LimitAskKind.MONEY, self.worst, self.likely, self.key,
            self.seconds,
        )  # fmt: skip

    def admit(self, number: int, tell: TellEnd) -> None:
        """The home has let it in under this number, and is to be told of its end."""
        self.number, self._tell = number, tell

    def end(self, spent: int | None) -> None:
        """It cost so many nano-dollars; None: nobody knows."""
        tell, self._tell = self._tell, None
        if tell is not None:
            tell(self, spent)


def money_of(ask: LimitAsk, number: int | None = None) -> CallMoney:
    """What a gateway asks for, under the number of its ask or another one."""
    return CallMoney(
        ask.tenant, ask.function, ask.key, ask.worst, ask.likely, ask.seconds, ask.number if number is None else number
    )
