"""An origin at a point of its call's life, frames of its agent, and what its effects come to."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.errors import (
    PilotlightError,
)
from pilotlight_core.model.messages.call_messages import (
    Ended,
    Outcome,
    RemoteError,
    Spent,
    Started,
)
from pilotlight_gateway.calls.effects import Effect, FailCall
from pilotlight_gateway.calls.origin import LAST_WORDS_S, Origin
from tests.builders.calls import grant, prepared_call

RAISED = RemoteError("ValueError", "no such town", "Traceback …")
HALF_MS = Spent(ns=1_000_000, ppm=500_000, price="h100")


def queued(**more: Any) -> Origin:
    origin = Origin(prepared_call(**more), "gw1", 0.0)
    origin.begin(0.0)
    origin.placed()
    return origin


def sent(**more: Any) -> Origin:
    origin = queued(**more)
    origin.granted(grant(1), 1.0)
    return origin


def running(**more: Any) -> Origin:
    origin = sent(**more)
    origin.frame("n1", Started(call_id="a", grant_number=1), 2.0)
    return origin


def ended(outcome: Outcome = Outcome.OK, number: int = 1, **more: Any) -> Ended:
    return Ended(call_id="a", grant_number=number, container="c1", outcome=outcome, **more)


def lose(origin: Origin, at: float, how: str) -> list[Effect]:
    if how == "node":
        held = origin.grant
        assert held is not None
        said = origin.node_gone(held.node, held.instance, "its node was silent", at)
        return said or origin.tick(at + LAST_WORDS_S)
    number = origin.grant.grant_number if origin.grant else 0
    return origin.frame("n1", ended(Outcome.DIED, number, reason="exit code 139"), at)


def error_of(actions: list[Effect]) -> PilotlightError:
    (failed,) = [action for action in actions if isinstance(action, FailCall)]
    return failed.error


def fail_of(actions: list[Effect]) -> FailCall:
    (failed,) = [action for action in actions if isinstance(action, FailCall)]
    return failed


def kinds(actions: list[Effect]) -> list[str]:
    return [type(action).__name__ for action in actions]
