"""What names weights, and what is stored of them."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import ArtifactPart
from pilotlight_core.model.versions.pushed_weights import (
    REMOVED_KEPT_S,
    WeightsRecord,
    WeightsRef,
    WeightsRevision,
    listing_of,
    parse_weights,
    parts_in,
    pickles_in,
    resident_id,
    weights_digest,
    weights_entry,
)

ONE, TWO = ArtifactPart("b", "1" * 64, 1), ArtifactPart("a", "2" * 64, 2)


def test_the_same_files_have_the_same_digest() -> None:
    """In whatever order they come; the parts of one file keep theirs."""
    assert weights_digest((ONE, TWO)) == weights_digest((TWO, ONE))
    first, second = (ArtifactPart("b", digit * 64, 1) for digit in "12")
    assert weights_digest((first, second)) != weights_digest((second, first))
    assert parts_in(listing_of((ONE, TWO))) == (TWO, ONE)
    entry = weights_entry("m", weights_digest((ONE,)), listing_of((ONE,)))
    assert (entry.name, entry.parts, entry.digest) == ("m", (ONE,), weights_digest((ONE,)))


@pytest.mark.parametrize(
    ("text", "ref"), [("m", WeightsRef("m")), (f"m@{'a' * 8}", WeightsRef("m", "a" * 8)), (f"m@{'0' * 64}", None)]
)
def test_a_ref_is_a_name_or_a_name_with_a_digest(text: str, ref: WeightsRef | None) -> None:
    """It is written as it is read."""
    found = parse_weights(text)
    assert ref is None or found == ref
    assert str(found) == text


@pytest.mark.parametrize(
    "text",
    ["", "@", "m@", "m@abc", f"m@{'A' * 8}", f"m@{'a' * 65}", "../m", "a/b", "m\n", "a@b@c", "é", f"m@{'a' * 8}\n"],
)
def test_what_is_no_ref_is_refused(text: str) -> None:
    """It becomes part of a key, and of a path on nodes."""
    with pytest.raises(BadInput, match="weights"):
        parse_weights(text)


def test_pickles_are_known_by_their_names() -> None:
    """In any case of letters; safetensors and data are none."""
    paths = ["a/model.PT", "model.safetensors", "config.json", "pytorch_model.bin", "x.ckpt", "tokens.txt"]
    assert pickles_in(paths) == ("a/model.PT", "pytorch_model.bin", "x.ckpt")


def test_what_was_removed_is_needed_for_a_day() -> None:
    """And is not present from then on."""
    one, two = (
        WeightsRevision(digest=digit * 64, files=1, parts=1, size=1, pushed_at=0.0, pushed_by="k", removed_at=removed)
        for digit, removed in (("1", 0.0), ("2", 100.0))
    )
    record = WeightsRecord(tenant="acme", name="m", revisions=(one, two))
    assert (record.present, record.newest) == ((one,), one)
    assert record.kept_at(100.0 + REMOVED_KEPT_S - 1) == (one, two)
    assert record.kept_at(100.0 + REMOVED_KEPT_S) == (one,)
    assert WeightsRecord(tenant="acme", name="m").newest is None


def test_placement_knows_them_by_tenant() -> None:
    """The same digest of two tenants is two."""
    assert resident_id("acme", "a" * 64) == f"acme:@{'a' * 64}"
