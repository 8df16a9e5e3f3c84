"""Keys of tenants are found by what signatures name them by."""

from __future__ import annotations

from tests.builders.supply import signing_key, trusting


def test_a_key_is_found_by_its_hint() -> None:
    """By all of it, and by nothing else."""
    one, other = signing_key(), signing_key()
    record = trusting(one)
    found = record.keys[0]

    assert (record.hinted(found.hint), found.id) == (found, found.hint[:16])
    assert record.hinted(found.hint[:16]) is record.hinted(trusting(other).keys[0].hint) is record.hinted("") is None
