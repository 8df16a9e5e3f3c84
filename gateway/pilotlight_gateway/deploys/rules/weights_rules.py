"""The rules for weights that are pushed. Agents create their files, so no name is trusted."""

from __future__ import annotations

from typing import NamedTuple

from pilotlight_core.model.api.weights_api import WeightsRequest
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart
from pilotlight_core.model.versions.artifacts import MAX_ARTIFACT_BYTES, MAX_PARTS, bytes_of
from pilotlight_core.model.versions.pushed_weights import WEIGHTS_PART_BYTES, pickles_in
from pilotlight_gateway.bodies.artifact_rules import check_parts
from pilotlight_gateway.bodies.json_structs import read_json

FIELD = "parts"
SHOWN = 20
"""Pickles that are told by name."""


class WeightsPush(NamedTuple):
    """A push that was checked."""

    entry: ArtifactEntry
    """Its files, those of one path together."""
    pickles: tuple[str, ...] = ()
    """Those that can run code when they are read; some of very many."""
    signature: bytes = b""
    """What the tenant has signed of it, which nobody has verified yet."""


def read_push(body: bytes, name: str) -> WeightsPush:
    """Read a push.

    Raises:
        BadInput: `bad_request`, or naming the field.
    """
    asked = read_json(body, WeightsRequest, patient=False)
    _check_amounts(asked.parts)
    pushed = ArtifactEntry(kind=ArtifactKind.WEIGHTS, name=name, parts=asked.parts)
    pickles = pickles_in(part.path for part in asked.parts)
    if pickles and not asked.allow_pickles:
        raise BadInput(
            f"{FIELD}: {pickles[0]!r} is a pickle by its name, which can run code when it is read: save tensors as "
            "safetensors, or push with --allow-pickle (`allow_pickles`) if you trust what you push.",
            field=FIELD,
        )
    check_parts(pushed, FIELD, most=WEIGHTS_PART_BYTES, allow_pickles=True)
    sizes: dict[str, int] = {}
    for part in pushed.parts:
        if sizes.setdefault(part.sha256, part.size) != part.size:
            raise BadInput(f"{FIELD}: {part.path!r} has a digest that stands with another size too.", field=FIELD)
    return WeightsPush(pushed, pickles[:SHOWN], asked.signature.encode())


def _check_amounts(parts: tuple[ArtifactPart, ...]) -> None:
    if not 0 < len(parts) <= MAX_PARTS:
        raise BadInput(f"{FIELD}: expected 1 to {MAX_PARTS} parts, got {len(parts)}.", field=FIELD)
    size = bytes_of((ArtifactEntry(kind=ArtifactKind.WEIGHTS, name="", parts=parts),))
    if size > MAX_ARTIFACT_BYTES:
        raise BadInput(f"{FIELD}: expected at most {MAX_ARTIFACT_BYTES} bytes in all, got {size}.", field=FIELD)
