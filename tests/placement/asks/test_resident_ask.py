"""What a version loads, and what nodes lack of it."""

from __future__ import annotations

import pytest

from pilotlight_core.model.artifacts.artifact_entries import ArtifactInfo, ArtifactKind
from pilotlight_placement.asks.resident_ask import PACKAGE_BYTES, ResidentAsk, disk_steps, fetch_steps, resident_asks

LARGE, SMALL = "b" * 64, "a" * 64


def info(digest: str, size: int) -> ArtifactInfo:
    return ArtifactInfo(kind=ArtifactKind.WEIGHTS, name=digest[:1] or "own", files=1, size=size, digest=digest)


def test_all_that_a_version_loads_is_asked_for() -> None:
    """Each of its weights by its digest, and its environment; files of its own have no digest that nodes tell."""
    asks = resident_asks("acme", artifacts=(info(LARGE, 9), info("", 5), info(SMALL, 1)), environment="env_1")
    assert asks == (
        ResidentAsk(f"acme:@{SMALL}", 1), ResidentAsk(f"acme:@{LARGE}", 9),
        ResidentAsk("env_1", PACKAGE_BYTES, is_built=True),
    )  # fmt: skip
    assert resident_asks("acme") == ()


@pytest.mark.parametrize(
    ("name", "ids"),
    [("llama", {"acme:llama", f"acme:@{LARGE}"}), (f"@{LARGE}", {f"acme:@{LARGE}"}), (f"@{SMALL}", {f"acme:@{SMALL}"})],
)
def test_a_name_is_one_thing_more_unless_it_is_a_digest_that_is_there(name: str, ids: set[str]) -> None:
    """Deploys of before wrote the largest digest as the name."""
    found = {each.id for each in resident_asks("acme", name=name, artifacts=(info(LARGE, 9),))}
    assert found == ids | {f"acme:@{LARGE}"}


@pytest.mark.parametrize("size", [0, 1, 2**24, 2**27, 2**34])
def test_a_node_that_has_it_on_disk_lacks_less_than_one_that_has_not(size: int) -> None:
    """And more than one with it in memory, however small it is."""
    assert 0 < disk_steps(ResidentAsk("w", size)) < fetch_steps(ResidentAsk("w", size))
