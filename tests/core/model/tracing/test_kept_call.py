"""What is kept of a call."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.messages.scheduling import TraceBatch
from pilotlight_core.model.messages.wire import decode, encode
from pilotlight_core.model.tracing.kept_call import KeptAttempt, KeptCall, KeptWhy

CALL = KeptCall(id="call_1", tenant="acme", function="acme:shop.rank", kept=KeptWhy.SLOW, stages={"queue": 3.0})


def test_its_owner_is_the_functions() -> None:
    """Who called may be another tenant; of what was refused early nobody is known."""
    assert (CALL.owner, msgspec.structs.replace(CALL, function="").owner) == ("acme", "")


def test_it_travels_whole() -> None:
    """In a message to the duties."""
    sent = TraceBatch(gateway="g1", calls=(msgspec.structs.replace(CALL, attempts=(KeptAttempt(outcome="died"),)),))
    assert decode(encode(sent)) == sent


def test_what_is_beyond_its_bounds_is_refused() -> None:
    """A time that cannot be, and more attempts than a call has."""
    for wrong in (
        msgspec.structs.replace(CALL, total_ms=float("nan")),
        msgspec.structs.replace(CALL, attempts=(KeptAttempt(),) * 17),
    ):
        with pytest.raises(msgspec.DecodeError):
            decode(encode(TraceBatch(gateway="g1", calls=(wrong,))))
