"""What a signature over a folder says, in the format of model-signing (OpenSSF), whose own tool verifies it too. Pure.

A signature is a Sigstore bundle around a DSSE envelope, whose statement lists each file with its digest, or each file's
shards. The folder is signed if the list has each of its files, and no other, with that digest. model-signing leaves
what belongs to git, and paths that a signer names, outside of a signature: here such files are refused.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import msgspec

from pilotlight_core.model.supply.envelopes import (
    IN_TOTO,
    Envelope,
    EnvelopeFault,
    base64_of,
    bytes_of_base64,
    signed_bytes,
)

BUNDLE_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://model_signing/signature/v1.0"
BUNDLE_BYTES = 4 * 2**20
"""Of a signature: ten thousand files of three hundred bytes each, in base64."""
SHOWN, SHOWN_LENGTH = 3, 200
"""Files that a sentence names, and characters of each name: a signature may list what it likes."""


class SignatureFault(ValueError):
    """Why a signature does not count, as a sentence that names the file."""


class SignedPart(NamedTuple):
    """A file of a folder, or a piece of one; those of one path stand in order."""

    path: str
    sha256: str
    size: int


class _PublicKey(msgspec.Struct, frozen=True, kw_only=True):
    hint: str = ""


class _Material(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    public_key: _PublicKey


class _Bundle(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    media_type: str
    verification_material: _Material
    dsse_envelope: Envelope


class _Subject(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""
    digest: dict[str, str] = {}


class _Resource(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    algorithm: str
    digest: str


class _Serialization(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    hash_type: str
    shard_size: float = 0
    """Its own tool writes 8.0."""
    allow_symlinks: bool = False

    @property
    def algorithm(self) -> str:
        """As each file or shard names it."""
        return "sha256" if self.method == "files" else f"sha256-sharded-{int(self.shard_size)}"


class _Predicate(msgspec.Struct, frozen=True, kw_only=True):
    serialization: _Serialization
    resources: tuple[_Resource, ...]


class _Statement(
    msgspec.Struct, frozen=True, kw_only=True, rename={"type": "_type", "predicate_type": "predicateType"}
):
    type: str
    subject: tuple[_Subject, ...]
    predicate_type: str
    predicate: _Predicate


class FolderSignature(NamedTuple):
    """A signature as it was read; nothing of it is believed yet."""

    hint: str
    """Of the key, as `trust_records.hint_of` has it."""
    signed: bytes
    """What the key has to have signed."""
    signature: bytes
    content: bytes
    """The statement, in JSON: `files_signed` reads it once the signature is verified."""


def read_signature(text: bytes) -> FolderSignature:
    """Raises SignatureFault."""
    if len(text) > BUNDLE_BYTES:
        raise SignatureFault(f"it has more than {BUNDLE_BYTES >> 20} MiB.")
    try:
        bundle = msgspec.json.decode(text, type=_Bundle)
        envelope = bundle.dsse_envelope
        if bundle.media_type != BUNDLE_TYPE or envelope.payload_type != IN_TOTO or len(envelope.signatures) != 1:
            raise SignatureFault("it is no signature of model-signing 1.0 by a key.")
        signature = bytes_of_base64(envelope.signatures[0].sig)
        return FolderSignature(
            bundle.verification_material.public_key.hint, envelope.signed, signature, envelope.content
        )
    except (msgspec.DecodeError, EnvelopeFault) as error:
        raise SignatureFault(f"it is no signature of model-signing 1.0 by a key: {error}.") from None


def check_signed(content: bytes, parts: Iterable[SignedPart]) -> None:
    """Hold the files of a folder to a statement whose signature is verified.

    Raises:
        SignatureFault: naming a file that is not as it was signed.
    """
    try:
        statement = msgspec.json.decode(content, type=_Statement)
    except msgspec.DecodeError as error:
        raise SignatureFault(f"what was signed cannot be read: {error}.") from None
    if (statement.type, statement.predicate_type) != (STATEMENT_TYPE, PREDICATE_TYPE) or len(statement.subject) != 1:
        raise SignatureFault("what was signed is no folder.")
    said = statement.predicate
    how = said.serialization
    if how.hash_type != "sha256" or any(each.algorithm != how.algorithm for each in said.resources):
        raise SignatureFault(f"expected digests by sha256, not {how.hash_type}.")
    if how.allow_symlinks:
        raise SignatureFault("it was made with symlinks allowed, and does not say what is one.")
    signed = {each.name: each.digest for each in said.resources}
    if len(signed) != len(said.resources) or _root(said.resources) != statement.subject[0].digest.get("sha256"):
        raise SignatureFault("its list of files is not the one that its digest is of.")
    _compare(signed, _present(list(parts), how))


def _compare(signed: Mapping[str, str], present: Mapping[str, str]) -> None:
    if added := sorted(set(present) - set(signed)):
        raise SignatureFault(f"{_shown(added)} is not signed: it was added since.")
    if missing := sorted(set(signed) - set(present)):
        raise SignatureFault(f"{_shown(missing)} is signed, and is not there.")
    if changed := sorted(name for name, digest in present.items() if signed[name] != digest):
        raise SignatureFault(f"{_shown(changed)} is not what was signed: it was changed since.")


def _present(parts: list[SignedPart], how: _Serialization) -> dict[str, str]:
    if outside := sorted({part.path for part in parts if is_outside(part.path)}):
        raise SignatureFault(f"{_shown(outside)} is outside of what model-signing signs: leave out what git keeps.")
    if how.method == "files":
        paths = [part.path for part in parts]
        if split := sorted(path for path, count in Counter(paths).items() if count > 1):
            raise SignatureFault(
                f"{_shown(split)} is stored in parts: sign it by shards of their size ('pilotlight trust sign' does)."
            )
        return {part.path: part.sha256 for part in parts}
    if how.method != "shards" or how.shard_size <= 0:
        raise SignatureFault(f"its list of files is made in a way that is not known here: {how.method}.")
    found: dict[str, str] = {}
    ends: dict[str, int] = {}
    for part in parts:
        start = ends.get(part.path, 0)
        if not part.size and not start:
            raise SignatureFault(f"{part.path} is empty, and a signature by shards leaves it out: leave it out too.")
        if not part.size or part.size > how.shard_size or start % how.shard_size:
            raise SignatureFault(
                f"{part.path} is stored in other parts than it was signed in: sign by shards of theirs."
            )
        ends[part.path] = start + part.size
        found[f"{part.path}:{start}:{ends[part.path]}"] = part.sha256
    return found


def is_outside(path: str) -> bool:
    """Whether model-signing leaves a path out."""
    return any(piece.startswith(".git") for piece in PurePosixPath(path).parts)


def _root(resources: Iterable[_Resource]) -> str:
    try:
        return hashlib.sha256(b"".join(bytes.fromhex(each.digest) for each in resources)).hexdigest()
    except ValueError:
        return ""


def _shown(names: list[str]) -> str:
    more = f" (and {len(names) - SHOWN} more)" if len(names) > SHOWN else ""
    return f"{', '.join(name[:SHOWN_LENGTH] for name in names[:SHOWN])}{more}"


def statement_of(name: str, parts: Iterable[SignedPart], shard_size: int) -> bytes:
    """What to sign of a folder, whose files are split into parts of `shard_size` bytes.

    Raises:
        SignatureFault: naming a file that cannot be signed.
    """
    listed = list(parts)
    paths = [part.path for part in listed]
    method = "files" if len(set(paths)) == len(paths) else "shards"
    how = _Serialization(method=method, hash_type="sha256", shard_size=shard_size)
    serialization: dict[str, Any] = {"method": method, "hash_type": "sha256", "allow_symlinks": False}
    if method == "shards":
        serialization["shard_size"] = shard_size
    found = sorted(_present(listed, how).items(), key=lambda one: _order(one[0], method))
    resources = [_Resource(name=path, algorithm=how.algorithm, digest=digest) for path, digest in found]
    return msgspec.json.encode(
        {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": name, "digest": {"sha256": _root(resources)}}],
            "predicateType": PREDICATE_TYPE,
            "predicate": {"serialization": serialization, "resources": resources},
        }
    )


def _order(name: str, method: str) -> tuple[Any, ...]:
    """As model-signing sorts."""
    if method == "files":
        return (PurePosixPath(name),)
    path, start, end = name.rsplit(":", 2)
    return (PurePosixPath(path), int(start), int(end))


def bundle_of(content: bytes, hint: str, signature: bytes) -> bytes:
    """A signature's file, as JSON."""
    return msgspec.json.encode(
        {
            "mediaType": BUNDLE_TYPE,
            "verificationMaterial": {"publicKey": {"hint": hint}, "tlogEntries": []},
            "dsseEnvelope": {
                "payload": base64_of(content),
                "payloadType": IN_TOTO,
                "signatures": [{"sig": base64_of(signature), "keyid": ""}],
            },
        }
    )


def to_sign(content: bytes) -> bytes:
    """The bytes that the key signs."""
    return signed_bytes(IN_TOTO, content)
