"""Names of stored prefixes."""

from __future__ import annotations

from itertools import combinations

from pilotlight_engine.scheduling.prefix_hashes import next_hash, prefix_root

PLAIN = {"salt": "", "adapter": "", "adapter_digest": "", "model_version": ""}


def test_whatever_differs_before_a_block_gives_it_another_name() -> None:
    """Also where one part ends as the next begins."""
    roots = [
        prefix_root(**PLAIN),
        *(prefix_root(**{**PLAIN, part: "ab"}) for part in PLAIN),
        prefix_root(**{**PLAIN, "salt": "a", "adapter": "b"}),
        prefix_root(**{**PLAIN, "adapter": "a", "adapter_digest": "b"}),
    ]

    assert all(one != other for one, other in combinations(roots, 2))


def test_a_chain_depends_on_every_token_before() -> None:
    """And on their places."""
    root = prefix_root(**PLAIN)
    chain = next_hash(next_hash(root, [1, 2]), [3, 4])

    assert chain == next_hash(next_hash(root, [1, 2]), [3, 4])
    assert chain != next_hash(next_hash(root, [2, 1]), [3, 4])
    assert chain != next_hash(next_hash(root, [1, 2]), [4, 3])
    assert chain != next_hash(root, [3, 4])
