"""Records of keys: what two requests share, and how a record changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_gateway.idempotency.key_record import (
    GRACE_S,
    KEPT_BYTES,
    CallOwner,
    FirstCallState,
    StoredAnswer,
    begun,
    ended,
    fingerprint_of,
    place_of,
    voided,
)

FIRST = begun(b"f", "call_1", CallOwner(name="gw", instance="gw-1"), at=1000.0, timeout_s=30.0)
PARTS = st.tuples(st.text(max_size=8), st.text(max_size=8), st.binary(max_size=8), st.binary(max_size=8))


def answer(size: int) -> StoredAnswer:
    return StoredAnswer(status=200, headers=(), body=bytes(size))


@given(one=PARTS, other=PARTS)
def test_only_the_same_request_has_the_same_fingerprint(
    one: tuple[str, str, bytes, bytes], other: tuple[str, str, bytes, bytes]
) -> None:
    """Function, method, form and input count, and none can pass for a part of its neighbour."""
    assert (fingerprint_of(*one) == fingerprint_of(*other)) == (one == other)


def test_a_key_is_its_tenants_own() -> None:
    """The same key of another tenant has another place, and a place fits a subject."""
    assert place_of("acme", "k") != place_of("rival", "k")
    assert place_of("acme", "k") == place_of("acme", "k")
    assert place_of("acme", "\0 .*>" * 50).isalnum()


def test_a_call_is_over_by_its_deadline_and_a_grace() -> None:
    """So that a record that nobody settles does not say RUNNING for ever."""
    assert (FIRST.stage, FIRST.began_at, FIRST.ends_at) == (FirstCallState.RUNNING, 1000.0, 1030.0 + GRACE_S)


def test_an_answer_is_kept_up_to_its_bound() -> None:
    """A larger one, and one for which there is no room, leave their status."""
    kept, large, roomless = (
        ended(FIRST, answer(KEPT_BYTES)), ended(FIRST, answer(KEPT_BYTES + 1)), ended(FIRST, answer(1), keep=False)
    )  # fmt: skip

    assert kept.answer == answer(KEPT_BYTES)
    assert [(r.stage, r.status, r.answer) for r in (large, roomless)] == [(FirstCallState.DONE, 200, None)] * 2
    assert voided(FIRST).stage is FirstCallState.VOID
