"""Messages about kept calls: what gateways send to the duties, which export it, and what they ask each other."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pilotlight_core.model.bounded import Count, ShortText
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.tracing.kept_call import KeptCall

MOST_OF_BATCH = 256
"""Kept calls of one message: at a few KB each they fit one of the bus."""


class TraceBatch(Message, frozen=True, kw_only=True):
    """What a gateway has kept since the last one."""

    gateway: ShortText
    calls: Annotated[tuple[KeptCall, ...], Meta(max_length=MOST_OF_BATCH)] = ()


class AskKept(Message, frozen=True, kw_only=True):
    """Which calls of a tenant does this gateway still have?"""

    tenant: ShortText
    call_id: ShortText = ""
    """Only this one."""
    function: ShortText = ""
    """Only of this one, `tenant:app.function`."""
    kept: ShortText = ""
    """Only those kept for this reason."""
    limit: Count = 100


class KeptTold(Message, frozen=True, kw_only=True):
    """They, the newest first."""

    gateway: ShortText
    calls: Annotated[tuple[KeptCall, ...], Meta(max_length=MOST_OF_BATCH)] = ()
