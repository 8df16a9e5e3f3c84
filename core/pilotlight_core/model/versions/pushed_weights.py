"""Weights that a tenant has pushed: what is stored of them, what names them, and which files are pickles.

Weights are files in parts, as artifacts of a version are, but belong to their tenant: versions of any app name them.
Their listing, which says which parts make up which file, is a blob too, and its digest is that of the weights. So a
digest stands for all bytes of all files, and weights that are pushed again unchanged are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart

WEIGHTS_PART_BYTES = 16 * 2**20
"""Of one part at most: large enough for an object store, small enough that many are read at once."""
MOST_WEIGHTS = 1_000
"""Names of one tenant."""
MOST_REVISIONS = 50
"""Digests of one name."""
REMOVED_KEPT_S = 86_400.0
"""What was removed keeps its blobs so long: a deploy that has just named it is over by then."""
LEAST_DIGITS = 8
"""Of a digest that is shortened."""
PICKLE_SUFFIXES = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".ckpt", ".bin", ".ptl")
"""Of files that are pickles, or that libraries read as such: reading one can run code."""
REF = re.compile(rf"(?P<name>[^@]+)(?:@(?P<digest>[0-9a-f]{{{LEAST_DIGITS},64}}))?")
RESIDENT = "@"
"""Begins the id by which placement knows the weights of a digest: `tenant:@digest`."""


class WeightsRevision(msgspec.Struct, frozen=True, kw_only=True):
    """What was pushed under a name at one time."""

    digest: str
    """Of its listing, which is a blob of the tenant's."""
    files: int
    parts: int
    size: int
    """Bytes of all files."""
    pushed_at: float
    """Unix seconds."""
    pushed_by: str
    """The id of the API key."""
    pickles: tuple[str, ...] = ()
    """Files that are pickles, which the pusher allowed; at most 20 of them."""
    signature: str = ""
    """What the tenant has signed of it: sha256 of a blob; "": it has not."""
    signed_by: str = ""
    """The key, as `trust_records.hint_of` has it."""
    removed_at: float = 0.0
    """When it was removed, in unix seconds; 0: it is there."""


class WeightsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant has pushed under one name. Key: `weights.{tenant}.{name}`."""

    tenant: str
    name: str
    revisions: tuple[WeightsRevision, ...] = ()
    """Oldest first, each digest once."""

    @property
    def present(self) -> tuple[WeightsRevision, ...]:
        """Those that were not removed."""
        return tuple(one for one in self.revisions if not one.removed_at)

    def kept_at(self, at: float) -> tuple[WeightsRevision, ...]:
        """Those whose blobs are needed at the unix second `at`."""
        return tuple(one for one in self.revisions if not one.removed_at or at - one.removed_at < REMOVED_KEPT_S)

    @property
    def newest(self) -> WeightsRevision | None:
        present = self.present
        return present[-1] if present else None


class WeightsRef(NamedTuple):
    """`name`, or `name@digest`."""

    name: str
    digest: str = ""
    """Empty: the newest. May be shortened."""

    def __str__(self) -> str:
        return f"{self.name}@{self.digest}" if self.digest else self.name


def parse_weights(text: str, field: str = "weights") -> WeightsRef:
    """Read `name` or `name@digest`.

    Raises:
        BadInput: naming `field` and what was expected.
    """
    found = REF.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise BadInput(
            f'{field}: {text!r}: expected a name such as "llama", or "llama@" and at least {LEAST_DIGITS} of the 64 '
            "hexadecimal digits of a digest.",
            field=field,
        )
    return WeightsRef(check_name(found["name"], field), found["digest"] or "")


class _Listing(msgspec.Struct, frozen=True):
    """The blob of a listing."""

    parts: tuple[tuple[str, str, int], ...]
    pilotlight_weights: int = 1


def listing_of(parts: Iterable[ArtifactPart]) -> bytes:
    """The bytes of a listing: of equal files they are equal. Parts of one file keep their order."""
    ordered = sorted(parts, key=lambda part: part.path)
    return msgspec.json.encode(_Listing(tuple((part.path, part.sha256, part.size) for part in ordered)))


def weights_digest(parts: Iterable[ArtifactPart]) -> str:
    """The digest of weights that are these parts."""
    import hashlib  # who imports pilotlight does not wait for it

    return hashlib.sha256(listing_of(parts)).hexdigest()


def parts_in(listing: bytes) -> tuple[ArtifactPart, ...]:
    """The parts that a listing names. Raises DecodeError."""
    found = msgspec.json.decode(listing, type=_Listing)
    return tuple(ArtifactPart(path, sha256, size) for path, sha256, size in found.parts)


def weights_entry(name: str, digest: str, listing: bytes) -> ArtifactEntry:
    """Weights as an artifact of a version. Raises DecodeError."""
    return ArtifactEntry(kind=ArtifactKind.WEIGHTS, name=name, parts=parts_in(listing), digest=digest)


def resident_id(tenant: str, digest: str) -> str:
    """By which placement knows which nodes have them."""
    return f"{tenant}:{RESIDENT}{digest}"


def pickles_in(paths: Iterable[str]) -> tuple[str, ...]:
    """Those of the paths that are pickles by their suffix, in order."""
    return tuple(sorted({path for path in paths if path.lower().endswith(PICKLE_SUFFIXES)}))
