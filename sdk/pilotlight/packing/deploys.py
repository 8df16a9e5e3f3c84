"""Deploys an app: asks, uploads the missing blobs, asks again."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial

from pilotlight.client.resources.platform import PlatformClient
from pilotlight.definitions.errors import Conflict, Misuse
from pilotlight.packing.bundle import Bundle
from pilotlight.packing.packed_artifacts import LocalPart, PackedArtifacts
from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest, DeployResponse, DeploySignature
from pilotlight_core.model.spec import DEFAULT_BASE, FunctionSpec

UPLOADS = 4
"""Concurrent uploads."""
ROUNDS = 3
CHUNK_BYTES = 256 * 1024

Progress = Callable[[int, int], None]
"""(bytes uploaded, bytes to upload)"""


async def deploy(
    platform: PlatformClient,
    app: str,
    functions: dict[str, FunctionSpec],
    bundle: Bundle,
    artifacts: PackedArtifacts | None = None,
    *,
    base: str = DEFAULT_BASE,
    requirements: tuple[str, ...] = (),
    signatures: tuple[DeploySignature, ...] = (),
    message: str = "",
    prune: bool = False,
    no_traffic: bool = False,
    retry: bool = False,
    ends_in_s: float | None = None,
    progress: Progress | None = None,
) -> DeployResponse:
    """Deploy all functions of an app, or none. `prune`: take its other functions out of service.

    `no_traffic`: register their versions, and leave what is deployed as it is. `retry`: also versions that a rollout
    has rolled back.

    `base` is the base environment that they run in, `requirements` what they find beside it.
    `ends_in_s`: as a run, which ends after so many seconds unless it is renewed.

    Raises:
        RemovesFunctions: it has others, and `prune` is not set.
        Misuse: if a file changed since it was packed.
        PilotlightError: why the platform refused.
    """
    packed = artifacts or PackedArtifacts()
    sources = _sources(bundle) | packed.parts
    request = DeployRequest(
        functions=tuple(
            DeployFunction(spec=spec, artifacts=packed.names.get(name, ()), weights=packed.weights.get(name, ()))
            for name, spec in functions.items()
        ),
        files=bundle.files,
        message=message,
        base=base,
        requirements=requirements,
        prune=prune,
        no_traffic=no_traffic,
        retry=retry,
        ends_in_s=ends_in_s,
        artifacts=packed.entries,
        signatures=signatures,
    )
    for _ in range(ROUNDS):
        answer = await platform.deploy_app(app, request)
        if not answer.missing:
            return answer
        await upload_parts(platform, sources, answer.missing, progress)
    raise Conflict("Files that were uploaded are missing again and again: try once more.")


def _sources(bundle: Bundle) -> dict[str, LocalPart]:
    """Where the contents of a bundle are, by sha256."""
    sizes = {entry.sha256: entry.size for entry in bundle.files}
    return {digest: LocalPart(path, 0, sizes[digest], sizes[digest]) for digest, path in bundle.paths.items()}


async def upload_parts(
    platform: PlatformClient, sources: dict[str, LocalPart], digests: tuple[str, ...], progress: Progress | None
) -> None:
    """Upload the contents of these digests.

    Raises:
        Misuse: if a file changed since it was packed.
        PilotlightError: why the platform refused.
    """
    total, done = sum(sources[digest].size for digest in digests), 0
    todo: Iterator[str] = iter(digests)

    def sent(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(min(done, total), total)

    async def work() -> None:
        for digest in todo:  # shared: each worker takes the next one
            source = sources[digest]
            await platform.upload_blob(digest, source.size, partial(_content, source, digest, sent))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(UPLOADS):
                group.create_task(work())
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def _content(source: LocalPart, digest: str, sent: Callable[[int], None]) -> AsyncIterator[bytes]:
    """Yield the bytes of a file or of its part, the last piece once the hash is right.

    Raises:
        Misuse: if the file changed since it was packed.
    """
    left, seen = source.size, hashlib.sha256()
    last = b""
    with source.path.open("rb") as file:
        file.seek(source.start)
        while left and (chunk := await asyncio.to_thread(file.read, min(left, CHUNK_BYTES))):
            if last:
                yield last
                sent(len(last))
            last, left = chunk, left - len(chunk)
            seen.update(chunk)
        has_grown = os.fstat(file.fileno()).st_size != source.whole
    if left or has_grown or seen.hexdigest() != digest:
        changed = (
            f"{source.path} has changed while it was uploaded: leave it out with .pilotlightignore, or deploy again."
        )
        raise Misuse(changed, field="target")
    yield last
    sent(len(last))
