"""What a version's own bill of materials says of its packages is what a node had told."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.supply.sbom import sbom_of
from pilotlight_gateway.supply.sbom_packages import SbomInventories, packages_in
from tests.builders.specs import function_spec, manifest
from tests.builders.supply import AT, BASE, lock_of

MADE = msgspec.structs.replace(manifest(function_spec("rank")), lock=lock_of(duckdb="1.3"))


async def test_packages_and_licences_come_back() -> None:
    """Of the base, and of what is locked over it."""
    known = packages_in(sbom_of(MADE, "d" * 64, AT, BASE, {"pkg:pypi/duckdb@1.3": "MIT"}))

    assert known.base is not None
    assert known.base.digest == BASE.digest
    assert {(each.purl, each.licence) for each in known.base.packages} == {
        ("pkg:pypi/numpy@2.1.0", "BSD-3-Clause"), ("pkg:pypi/strange-pack@1.0", ""), ("pkg:pypi/unknown@0.1", ""),
    }  # fmt: skip
    assert known.licences == {"pkg:pypi/duckdb@1.3": "MIT"}
    assert await SbomInventories(known).known("acme", "default") == known


def test_of_an_unknown_base_nothing_is_known() -> None:
    """As it was at the deploy."""
    assert packages_in(sbom_of(MADE, "d" * 64, AT)).base is None
