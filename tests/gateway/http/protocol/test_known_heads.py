"""Heads that are known by their bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from pilotlight_gateway.http.protocol.known_heads import KNOWN_AT_MOST, LONGEST_KNOWN, KnownHeads

HEAD = b"POST /x HTTP/1.1\r\ncontent-length: 2\r\n\r\n"


@dataclass
class Head:
    traceparent: str = ""


class Nobody:
    """Takes nothing."""

    def serves(self, url: bytes) -> bool:
        return False

    def read_head(self, url: bytes, headers: list[tuple[bytes, bytes]]) -> None:
        return None

    def take(self, connection: Any, head: Any, body: bytes) -> bool:
        return False


def test_a_read_that_is_one_request_makes_its_head_known() -> None:
    heads, head = KnownHeads(Nobody()), Head()
    heads.note(HEAD + b"{}", head, b"{}")
    assert heads.known == {HEAD: (head, 2)}


@pytest.mark.parametrize(
    ("read", "body"),
    [
        (HEAD + b"{}" + HEAD + b"{}", b"{}"),
        (b"\r\n\r\n" + HEAD + b"{}", b"{}"),
        (HEAD + b"2\r\n{}\r\n0\r\n\r\n", b"{}"),
        (b"x" * LONGEST_KNOWN + HEAD + b"{}", b"{}"),
    ],
)
def test_a_read_with_more_to_it_does_not(read: bytes, body: bytes) -> None:
    """Several requests, empty lines before one, a body in chunks, a long head."""
    heads = KnownHeads(Nobody())
    heads.note(read, Head(), body)
    assert heads.known == {}


def test_a_head_with_a_trace_comes_once_and_is_not_kept() -> None:
    heads = KnownHeads(Nobody())
    heads.note(HEAD + b"{}", Head("00-a-b-01"), b"{}")
    assert heads.known == {}


def test_heads_are_bounded() -> None:
    heads = KnownHeads(Nobody())
    for number in range(2 * KNOWN_AT_MOST + 1):
        heads.note(b"%d%s{}" % (number, HEAD), Head(), b"{}")
        assert len(heads.known) <= KNOWN_AT_MOST
