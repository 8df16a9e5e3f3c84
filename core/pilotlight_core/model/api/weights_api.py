"""Weights that tenants push, as the API takes and shows them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.api.call_api import SIGNATURE_LENGTH
from pilotlight_core.model.spec import ArtifactPart


class WeightsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`PUT /v1/weights/{name}`: all files, in parts of at most 16 MiB.

    If `missing` in the answer is not empty, nothing was stored under the name: the client uploads the parts (`PUT
    /v1/blobs/{sha256}`) and repeats the request.
    """

    parts: Annotated[
        tuple[ArtifactPart, ...],
        Meta(description="those of one path stand together, and their contents make up the file in this order"),
    ]
    allow_pickles: Annotated[bool, Meta(description="store files that can run code when they are read")] = False
    signature: Annotated[
        str,
        Meta(
            max_length=SIGNATURE_LENGTH,
            description="the tenant's own signature over the files, of model-signing by a key on record; kept with "
            'them, and verified at each deploy and load. "": as before, if these files were there',
        ),
    ] = ""


class SignatureInfo(msgspec.Struct, frozen=True, kw_only=True):
    """By whom weights were signed."""

    key: str
    """The key's id."""
    name: str
    """Its name on record; "": it is not there any more."""
    counts: bool
    """Whether a deploy of the weights passes."""
    why: str
    """Why it does not, as the rest of a sentence."""


class RevisionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What was pushed under a name at one time."""

    digest: str
    files: int
    size: int
    """Bytes of all files."""
    pushed_at: float
    """Unix seconds."""
    pushed_by: str
    """The id of the API key."""
    pickles: list[str] = []
    """Files that can run code when they are read, which the pusher allowed; at most 20."""
    functions: list[str] = []
    """`app.function` of those in service that use it."""
    signed: SignatureInfo | None = None
    """None: they are not signed."""


class WeightsInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The weights of one name."""

    name: str
    revisions: list[RevisionInfo]
    """Oldest first; the last one is what functions get that name no digest."""


class WeightsFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of weights."""

    path: str
    size: int
    parts: int


class WeightsDetail(msgspec.Struct, frozen=True, kw_only=True):
    """The weights of one name and digest, with their files."""

    name: str
    revision: RevisionInfo
    contents: list[WeightsFile]


class PushResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a push."""

    name: str
    digest: str
    size: int
    missing: tuple[str, ...] = ()
    """Digests of parts to upload first; if not empty, nothing was stored under the name."""
    unchanged: bool = False
    """Whether these weights were the newest of the name before."""
    signed: SignatureInfo | None = None
    """None: they are not signed."""


class RemovedWeights(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed. Its blobs are deleted within two days, once no kept version has them."""

    name: str
    digests: list[str]
