"""Which weights the functions of a deploy get: what they name is looked up once, and pinned by its digest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest
from pilotlight_core.model.errors import BadInput, NotFound
from pilotlight_core.model.spec import ArtifactEntry, FunctionSpec
from pilotlight_core.model.versions.artifacts import MAX_ARTIFACT_BYTES, MAX_ARTIFACTS, MAX_PARTS, bytes_of
from pilotlight_core.model.versions.pushed_weights import parse_weights
from pilotlight_gateway.deploys.weights_pushes import PushedWeights
from pilotlight_gateway.tenancy.registry_port import RegistryPort

Pins = Mapping[str, tuple[ArtifactEntry, ...]]
"""function -> the weights that it gets."""


async def pinned_weights(weights: PushedWeights, tenant: str, request: DeployRequest) -> Pins:
    """What the functions of a deploy name of their tenant's weights, as it is now.

    Raises:
        BadInput: names a function, and what it names that is not there, or that is too much.
    """
    known: dict[str, ArtifactEntry] = {}
    pins: dict[str, tuple[ArtifactEntry, ...]] = {}
    for function in request.functions:
        found = [await _entry(weights, tenant, function, text, known) for text in function.weights]
        if found:
            pins[function.spec.name] = tuple(sorted(found, key=lambda one: one.name))
            _check_together(function, found, request)
    return pins


async def pushed_signatures(weights: PushedWeights, tenant: str, pins: Pins) -> dict[str, dict[str, bytes]]:
    """By function, what was signed of the weights that it gets, when they were pushed.

    Raises:
        BadInput: the store has lost one.
    """
    found: dict[tuple[str, str], bytes | None] = {}
    for one in (entry for entries in pins.values() for entry in entries):
        if (one.name, one.digest) not in found:
            found[one.name, one.digest] = await weights.signature(tenant, one.name, one.digest)
    return {
        function: {one.name: text for one in entries if (text := found[one.name, one.digest]) is not None}
        for function, entries in pins.items()
    }


async def _entry(
    weights: PushedWeights, tenant: str, function: DeployFunction, text: str, known: dict[str, ArtifactEntry]
) -> ArtifactEntry:
    if text not in known:
        ref = parse_weights(text)
        try:
            known[text] = await weights.entry(tenant, ref)
        except (NotFound, BadInput) as error:
            raise BadInput(f"{function.spec.name}: weights: {error.detail}", field="weights") from None
    return known[text]


def _check_together(function: DeployFunction, found: list[ArtifactEntry], request: DeployRequest) -> None:
    """Refuse two of one name, and more than an agent takes."""
    own = [artifact for artifact in request.artifacts if artifact.name in function.artifacts]
    names = [one.name for one in (*own, *found)]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(
                f"{function.spec.name}: weights: {name!r} stands twice among its weights and artifacts, which share a "
                "folder: name each once.",
                field="weights",
            )
    parts = sum(len(one.parts) for one in (*own, *found))
    if len(names) > MAX_ARTIFACTS or parts > MAX_PARTS or bytes_of((*own, *found)) > MAX_ARTIFACT_BYTES:
        raise BadInput(
            f"{function.spec.name}: weights: with its artifacts it would have {len(names)} of them in {parts} parts; "
            f"the most are {MAX_ARTIFACTS}, {MAX_PARTS} parts, and {MAX_ARTIFACT_BYTES >> 30} GiB.",
            field="weights",
        )


def affinity_warnings(registry: RegistryPort, tenant: str, specs: Iterable[FunctionSpec]) -> tuple[str, ...]:
    """What a deployer should know of functions that name weights which were pushed, and do not get them."""
    names = {record.name for record in registry.iter_weights(tenant) if record.present}
    return tuple(
        f'{spec.name}: weights="{spec.placing.weights}" is only a name by which nodes are preferred. To have the '
        f'weights that were pushed under it, write weights=["{spec.placing.weights}"].'
        for spec in specs
        if spec.placing.weights in names
    )
