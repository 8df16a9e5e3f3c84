"""Tenants' shares of the room."""

from __future__ import annotations

from pilotlight_engine.scheduling.kv_shares import KvShares


def _two() -> KvShares:
    shares = KvShares(blocks=100, slots=10)
    shares.join("a", 1.0)
    shares.join("b", 3.0)
    return shares


def test_a_share_is_the_weight_of_all_weights() -> None:
    """A quarter, of blocks and of slots."""
    shares = _two()
    shares.hold("a", blocks=10, slots=1)

    assert shares.is_within("a", blocks=15)
    assert not shares.is_within("a", blocks=16)
    shares.hold("a", blocks=0, slots=1)
    assert not shares.is_within("a", blocks=1)
    assert shares.is_within("b", blocks=75)


def test_one_sequence_is_within_any_share() -> None:
    """Unless it is asked about by itself."""
    shares = _two()

    assert shares.is_within("a", blocks=100)
    assert not shares.is_within("a", blocks=100, alone=False)


def test_whoever_holds_more_is_beyond() -> None:
    """A share alone is not."""
    shares = _two()
    shares.hold("a", blocks=25, slots=2)
    assert not shares.is_beyond("a")

    shares.hold("a", blocks=1)
    assert shares.is_beyond("a")


def test_a_tenant_leaves_with_its_last_sequence_and_the_rest_is_the_others() -> None:
    """Shares are of those present."""
    shares = _two()
    shares.join("b", 3.0)

    assert not shares.leave("b")
    assert shares.leave("b")
    shares.hold("a", blocks=1, slots=1)
    assert shares.is_within("a", blocks=99)


def test_a_copy_is_for_trying() -> None:
    """The original knows nothing of it."""
    shares = _two()
    tried = shares.copy()
    tried.hold("a", blocks=100, slots=2)

    assert tried.is_beyond("a")
    assert not shares.is_beyond("a")
    assert (tried.slots_of("a"), shares.slots_of("a")) == (2, 0)


def test_whoever_has_one_sequence_is_not_beyond() -> None:
    """However large it is."""
    shares = _two()
    shares.hold("a", blocks=100, slots=1)

    assert not shares.is_beyond("a")
