"""Gateways that did not answer, in a line."""

from __future__ import annotations

from pilotlight.cli.unheard import unheard_text


def test_they_are_named_or_counted() -> None:
    assert unheard_text(["gw-1", "gw-2"]) == "gw-1, gw-2"
    assert unheard_text(["a gateway"]) == "a gateway"
    assert unheard_text(["a gateway"] * 3) == "3 gateways"
