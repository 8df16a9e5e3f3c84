"""Signatures over pushed weights are told of as their keys stand, and one that the store has changed is lost."""

from __future__ import annotations

import hashlib

import pytest

from pilotlight_core.host.blobs import MemoryBlobs
from pilotlight_core.model.api.weights_api import SignatureInfo
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.supply.key_terms import KeyTerms
from pilotlight_core.model.versions.pushed_weights import WeightsRecord, WeightsRevision
from pilotlight_gateway.supply.weights_signatures import pushed_signature, signature_info
from tests.builders.supply import AT, signing_key, trusting

SIGNATURE = hashlib.sha256(b"sig").hexdigest()
PUSHED = WeightsRevision(digest="d" * 64, files=1, parts=1, size=1, pushed_at=0.0, pushed_by="k", signature=SIGNATURE)
RECORD = WeightsRecord(tenant="acme", name="llama", revisions=(PUSHED,))


async def test_a_signature_is_read_as_it_was_pushed() -> None:
    """Not one that the store has changed meanwhile, nor another tenant's."""
    blobs = MemoryBlobs()
    await blobs.put("acme", SIGNATURE, b"sig")
    assert await pushed_signature(blobs, RECORD, "d" * 64) == b"sig"
    assert await pushed_signature(blobs, RECORD, "e" * 64) is None
    assert await pushed_signature(blobs, None, "d" * 64) is None

    blobs.kept["acme", SIGNATURE] = b"sog"
    with pytest.raises(BadInput, match="The signature of llama@dddddddddddd is not in the blob store"):
        await pushed_signature(blobs, RECORD, "d" * 64)


def test_people_hear_by_whose_key_it_is_and_whether_that_counts() -> None:
    """As the record of keys says now."""
    signer = signing_key()
    record = trusting(signer)
    hint = record.keys[0].hint

    assert signature_info("", record, AT) is None
    assert signature_info(hint, record, AT) == SignatureInfo(key=hint[:16], name="key1", counts=True, why="")
    expired = signature_info(hint, trusting(signer, terms=KeyTerms(not_after=AT)), AT)
    assert expired is not None
    assert (expired.counts, expired.why[:11]) == (False, "has expired")
    for other in (None, trusting(signing_key())):
        told = signature_info(hint, other, AT)
        assert told is not None
        assert (told.name, told.counts) == ("", False)
