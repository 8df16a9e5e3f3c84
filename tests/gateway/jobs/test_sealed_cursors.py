"""Cursors say nothing to their tenant, and nothing to any other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.errors import BadInput, NotFound
from pilotlight_gateway.jobs.sealed_cursors import PATTERN, CursorSealer


class Secrets:
    """A store whose secret is asked for; `asked` counts that."""

    def __init__(self, secret: bytes = b"s" * 32) -> None:
        self.asked = 0
        self._secret = secret

    async def secret(self) -> bytes:
        self.asked += 1
        return self._secret


@given(place=st.integers(0, 2**64 - 1))
async def test_a_cursor_opens_to_its_place(place: int) -> None:
    """At every gateway; the secret is asked for once by each."""
    store = Secrets()
    one, two = CursorSealer(store), CursorSealer(store)
    cursors = [await one.seal("acme", place) for _ in range(2)]

    assert all(PATTERN.fullmatch(cursor) for cursor in cursors)
    assert cursors[0] != cursors[1]
    assert [await two.open("acme", cursor) for cursor in cursors] == [place, place]
    assert store.asked == 2


async def test_another_tenants_cursor_is_none() -> None:
    """Nor is one of another platform, or one that was changed."""
    sealer = CursorSealer(Secrets())
    cursor = await sealer.seal("acme", 7)
    changed = ("A" if cursor[0] != "A" else "B") + cursor[1:]
    for tenant, wrong, opener in (
        ("rival", cursor, sealer),
        ("acme", changed, sealer),
        ("acme", cursor, CursorSealer(Secrets(b"t" * 32))),
    ):
        with pytest.raises(NotFound, match="begin anew"):
            await opener.open(tenant, wrong)


@pytest.mark.parametrize("text", ["", "7", "=" * 48, "A" * 47, "A" * 49, "ä" * 48])
async def test_what_has_not_the_form_of_a_cursor_names_its_field(text: str) -> None:
    """Before the secret is asked for."""
    store = Secrets()
    with pytest.raises(BadInput) as refused:
        await CursorSealer(store).open("acme", text)

    assert refused.value.more["field"] == "cursor"
    assert store.asked == 0
