"""JSON bodies as structs."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.bodies.json_structs import read_json


class Order(msgspec.Struct, forbid_unknown_fields=True):
    count: int
    items: list[int] = []


def test_a_whole_number_may_have_a_point_if_there_is_patience() -> None:
    """JSON does not distinguish 3.0 from 3; telling takes a walk over every value."""
    body = b'{"count": 3.0, "items": [1, 2.0]}'

    assert read_json(body, Order, patient=True) == Order(3, [1, 2])
    with pytest.raises(BadInput, match="count"):
        read_json(body, Order, patient=False)


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        (b"{", "bad_request", None),
        (b'{"count": "x"}', "bad_input", "count"),
        (b'{"count": 1.5}', "bad_input", "count"),
        (b'{"count": 1, "more": 1}', "bad_input", "more"),
        (b'{"count": 1, "items": ' + b"[" * 100_000, "bad_input", "items.0"),
        (b"\xff", "bad_request", None),
    ],
)
def test_what_cannot_be_read_is_refused(body: bytes, code: str, field: str | None) -> None:
    """It names the field."""
    with pytest.raises(BadInput) as refused:
        read_json(body, Order, patient=True)

    assert (refused.value.wire_code, refused.value.more.get("field")) == (code, field)
