"""Deploys an app: asks, uploads the missing blobs, asks again."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path

from pilotlight.client.resources.platform import PlatformClient
from pilotlight.definitions.errors import Conflict, Misuse
from pilotlight.packing.bundle import Bundle
from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest, DeployResponse
from pilotlight_core.model.spec import FunctionSpec

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
    *,
    message: str = "",
    prune: bool = False,
    ends_in_s: float | None = None,
    progress: Progress | None = None,
) -> DeployResponse:
    """Deploy all functions of an app, or none. `prune`: take its other functions out of service.

    `ends_in_s`: as a run, which ends after so many seconds unless it is renewed.

    Raises:
        RemovesFunctions: it has others, and `prune` is not set.
        Misuse: if a file changed since it was packed.
        PilotlightError: why the platform refused.
    """
    request = DeployRequest(
        functions=tuple(DeployFunction(spec=spec) for spec in functions.values()),
        files=bundle.files,
        message=message,
        prune=prune,
        ends_in_s=ends_in_s,
    )
    for _ in range(ROUNDS):
        answer = await platform.deploy_app(app, request)
        if not answer.missing:
            return answer
        await _upload(platform, bundle, answer.missing, progress)
    raise Conflict("Files that were uploaded are missing again and again: try once more.")


async def _upload(
    platform: PlatformClient, bundle: Bundle, digests: tuple[str, ...], progress: Progress | None
) -> None:
    sizes = {entry.sha256: entry.size for entry in bundle.files}
    total, done = sum(sizes[digest] for digest in digests), 0
    todo: Iterator[str] = iter(digests)

    def sent(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(min(done, total), total)

    async def work() -> None:
        for digest in todo:  # shared: each worker takes the next one
            path = bundle.paths[digest]
            await platform.upload_blob(digest, sizes[digest], partial(_content, path, sizes[digest], digest, sent))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(UPLOADS):
                group.create_task(work())
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def _content(path: Path, size: int, digest: str, sent: Callable[[int], None]) -> AsyncIterator[bytes]:
    """Yield a file's bytes, the last piece once the hash is right.

    Raises:
        Misuse: if the file changed since it was packed.
    """
    left, seen = size, hashlib.sha256()
    last = b""
    with path.open("rb") as file:
        while left >= 0 and (chunk := await asyncio.to_thread(file.read, CHUNK_BYTES)):
            if last:
                yield last
                sent(len(last))
            last, left = chunk, left - len(chunk)
            seen.update(chunk)
    if left or seen.hexdigest() != digest:
        changed = f"{path} has changed while it was uploaded: leave it out with .pilotlightignore, or deploy again."
        raise Misuse(changed, field="target")
    yield last
    sent(len(last))
