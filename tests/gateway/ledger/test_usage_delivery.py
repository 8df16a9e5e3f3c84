"""Who sent what the stream of usage has."""

from __future__ import annotations

import pytest

from pilotlight_core.model import subjects
from pilotlight_gateway.ledger.usage_delivery import Sender, delivery_of


@pytest.mark.parametrize(
    ("subject", "sender", "node"),
    [
        (subjects.usage("local", "n1", "acme"), Sender.AGENT, "n1"),
        (subjects.usage("local", "n1", "-"), Sender.AGENT, "n1"),
        (subjects.bindings("local", "n1"), Sender.CONTROLLER, "n1"),
        ("usage.local.acme", Sender.BEFORE_NODES, ""),
        ("usage.local.-", Sender.BEFORE_NODES, ""),
    ],
)
def test_a_subject_says_who_sent(subject: str, sender: Sender, node: str) -> None:
    """The bus lets nobody else publish there."""
    delivery = delivery_of(7, subject, 1.0, "what")

    assert (delivery.sender, delivery.node, delivery.seq, delivery.at, delivery.message) == (
        sender,
        node,
        7,
        1.0,
        "what",
    )
