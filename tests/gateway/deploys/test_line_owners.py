"""Which node may write a container's lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotlight_core.host.binding_book import MemoryBindings
from pilotlight_core.model.messages.bindings import Bound
from pilotlight_core.model.price_book import load_prices
from pilotlight_gateway.deploys.line_owners import BoundLineOwners, LineOwner, MemoryLineOwners
from pilotlight_gateway.ledger.ledger_reader import LedgerReader
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.usage_delivery import Sender, UsageDelivery
from tests.builders.nodes import binding

OWNER = LineOwner("n1", "acme:hello.greet")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}", load_prices())
    yield ledger
    ledger.close()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[LedgerReader]:
    reader = LedgerReader(f"sqlite:///{tmp_path / 'ledger.sqlite'}", load_prices())
    yield reader
    reader.close()


async def test_live_containers_are_known_at_once_and_ended_ones_from_the_ledger(
    ledger: Ledger, reader: LedgerReader
) -> None:
    """Also after the gateway was started anew."""
    bindings = MemoryBindings()
    bindings.bind(binding("live"))
    ended = Bound(binding=binding("ended"))
    ledger.fold("USAGE", 1, [UsageDelivery(seq=1, at=0.0, sender=Sender.CONTROLLER, node="n1", message=ended)])
    owners = BoundLineOwners(bindings, reader)

    assert await owners.find({"live", "ended", "forged"}) == {"live": OWNER, "ended": OWNER}
    ledger.prune(1.0)
    assert await owners.find(["ended"]) == {"ended": OWNER}


async def test_the_fake_knows_what_it_is_told() -> None:
    """And no more."""
    assert await MemoryLineOwners(known={"c1": OWNER}).find(["c1", "c2"]) == {"c1": OWNER}
