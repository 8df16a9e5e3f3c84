"""A model of a GiB from the host's page cache to its first byte, and weights from an S3 on this machine to a node.

From the cache: zero containers, a blank, and the weights on the node; the model is mapped, each of its pages touched,
and the caller's own stopwatch ends with the answer. Against the machine: copying the mapped model into memory that is
there already, or reading its file into it, whichever is slower, over copying as much from memory to memory. All of it
begins with a page, as a model does: other addresses can halve a rate, or that which it is held against.

From S3 (moto's server): what the agent's loader takes to fetch, verify and lay out parts of 16 MiB, over what 16
threads take that GET the same ranges and do nothing with them. Two more say how much of the difference is SHA-256,
which no loader is without that checks its parts: the same GETs with a digest of what they read (`s3_hashed_ratio`), and
reading as the loader reads, with a digest, but writing nothing (`s3_unwritten_ratio`). All take turns. (moto copies a
whole object for each range of it, so each range is an object, as the parts of weights are.)
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import report
from pilotlight_core.host.blobs.s3_blobs import S3Blobs
from pilotlight_core.host.blobs.whole_reads import BlobSource, read_pieces
from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart
from pilotlight_core.model.versions.pushed_weights import WEIGHTS_PART_BYTES, weights_digest
from pilotlight_runtime.containers.files.file_cache import FileCache
from pilotlight_runtime.containers.files.staging import OF_ONE, Stager
from pilotlight_runtime.containers.files.trusted_keys import TrustedKeys
from tests.builders.nodes import bind
from tests.builders.specs import function_spec, manifest
from tests.runtime.local_files import stored_files
from tests.system.support.platform import Platform, platform
from tests.waiting import wait_until

GIB = 2**30
APP = "benchmarks/functions/weights_app.py"
GETS = 16
BUCKET, TENANT = "blobs", "acme"


def main() -> None:
    """Run, print, finish."""
    options = report.parsed(report.arguments("weights_loading", __doc__ or ""))
    report.finish("weights_loading", loading_measured(quick=options.quick))


def loading_measured(*, quick: bool) -> dict[str, float]:
    """Load from the cache and from S3, and print a table; the figures."""
    runs, size = (3, GIB // 8) if quick else (30, GIB)
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder), "--blanks", "1") as running:
        _push(running, Path(folder) / "gib", size)
        cached, steps = _from_cache(running, runs)
        rates = running.output("bench-weights.Gib", method="rates")
    with tempfile.TemporaryDirectory() as folder, _moto() as store:
        s3 = asyncio.run(_from_s3(Path(folder), store, size // 2, 3 if quick else 7))
    rows = [
        ("a GiB from the host's cache, from zero: p50 ms", report.median(cached)),
        ("the same: p95 ms", report.percentile(cached, 95)),
        ("copied from the mapped model, GB/s", rates["map"] / 1e9),
        ("read from its file, GB/s", rates["read"] / 1e9),
        ("copied in memory, GB/s", rates["copy"] / 1e9),
        ("loaded from S3, MB/s", s3["loaded"].rate / 1e6),
        (f"{GETS} ranged GETs, MB/s", s3["got"].rate / 1e6),
        ("the same, with a digest of each, MB/s", s3["hashed"].rate / 1e6),
        ("read as the loader reads, with a digest of each, MB/s", s3["unwritten"].rate / 1e6),
    ]
    report.table("loading weights", ("what", "figure"), rows)
    print(f"steps (median ms): {steps}")
    print("processor seconds of a GB from S3, here and at the store:")
    print("; ".join(f"{name} {turn.own_s:.2f}, {turn.store_s:.2f}" for name, turn in s3.items()))
    return {
        "gib_cached_p50_ms": report.median(cached),
        "gib_cached_p95_ms": report.percentile(cached, 95),
        "gib_copy_ratio": min(rates["map"], rates["read"]) / rates["copy"],
        "s3_ratio": s3["loaded"].rate / s3["got"].rate,
        "s3_hashed_ratio": s3["hashed"].rate / s3["got"].rate,
        "s3_unwritten_ratio": s3["unwritten"].rate / s3["got"].rate,
        "s3_mb_per_s": s3["loaded"].rate / 1e6,
    }


def _push(running: Platform, folder: Path, size: int) -> None:
    """Push a model of so many bytes, and have its function's weights on the node."""
    make_model(folder, size)
    running.cli("weights", "push", "gib", str(folder))
    running.deploy(APP)
    running.output("bench-weights.Gib", method="first")


def make_model(folder: Path, size: int) -> None:
    """Write a model of so many random bytes into a folder of its own."""
    folder.mkdir()
    header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    with (folder / "model.safetensors").open("wb") as model:
        model.write(len(header).to_bytes(8, "little") + header)
        for start in range(0, size, 2**24):
            model.write(os.urandom(min(2**24, size - start)))


def _from_cache(running: Platform, runs: int) -> tuple[list[float], str]:
    totals, steps = [], list[dict[str, float]]()
    for _ in range(runs):
        running.http.post("/v1/apps/bench-weights/stop")
        wait_until(lambda: not running.containers(), "no containers are left", 60.0)
        running.deploy(APP)
        wait_until(running.blanks, "a blank is ready", 60.0)
        start = time.perf_counter()
        answer = running.answer("bench-weights.Gib", method="first")
        totals.append((time.perf_counter() - start) * 1000.0)
        steps.append(answer["cold_start"] or {})
    names = dict.fromkeys(name for each in steps for name in each)
    return totals, ", ".join(f"{name} {report.median([each.get(name, 0.0) for each in steps]):.0f}" for name in names)


@dataclass(frozen=True)
class Store:
    """A running S3."""

    endpoint: str
    pid: int

    def cpu_s(self) -> float:
        """What it has used of the processors."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _moto() -> Iterator[Store]:
    """moto's S3, in a process of its own."""
    os.environ |= {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
    os.environ["AWS_DEFAULT_REGION"] = "us-east-1"
    words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "5917"]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        endpoint = "http://127.0.0.1:5917"
        wait_until(lambda: _makes_bucket(endpoint), "moto answers", 60.0)
        yield Store(endpoint, server.pid)
    finally:
        server.terminate()
        server.wait()


def _client(endpoint: str) -> Any:
    import boto3
    from botocore.config import Config

    return boto3.client("s3", endpoint_url=endpoint, config=Config(max_pool_connections=GETS))


def _makes_bucket(endpoint: str) -> bool:
    try:
        _client(endpoint).create_bucket(Bucket=BUCKET)
    except Exception:  # noqa: BLE001 - it is not there yet
        return False
    return True


class Turn(NamedTuple):
    """One way to have all bytes from the store, once."""

    rate: float
    """Bytes per second."""
    own_s: float
    """Processor seconds of this process for each GB."""
    store_s: float
    """Those of the store."""


async def _from_s3(folder: Path, store: Store, size: int, runs: int) -> dict[str, Turn]:
    """The loader, plain ranged GETs, these with digests, and the loader's way to read with digests; medians."""
    blobs, client = S3Blobs(BUCKET, endpoint=store.endpoint), _client(store.endpoint)
    content = os.urandom(size)
    parts = []
    for start in range(0, size, WEIGHTS_PART_BYTES):
        data = content[start : start + WEIGHTS_PART_BYTES]
        digest = hashlib.sha256(data).hexdigest()
        await blobs.put(TENANT, digest, data)
        parts.append(ArtifactPart("model.safetensors", digest, len(data)))
    weights = ArtifactEntry(kind=ArtifactKind.WEIGHTS, name="model", parts=tuple(parts), digest=weights_digest(parts))
    version = manifest(function_spec("f"), artifacts=(weights,), tenant=TENANT)
    turns: dict[str, list[Turn]] = {"got": [], "hashed": [], "unwritten": [], "loaded": []}
    for number in range(runs):
        here = folder / str(number)
        stager = Stager(stored_files(blobs), TrustedKeys(folder / "keys"), FileCache(here / "cache"))
        code, models = here / "code", here / "models"
        code.mkdir(parents=True)
        models.mkdir()
        ways = {
            "got": asyncio.to_thread(_get_ranges, client, parts, check=False),
            "hashed": asyncio.to_thread(_get_ranges, client, parts, check=True),
            "unwritten": _read_parts(blobs, parts),
            "loaded": stager.stage(bind(tenant=TENANT), version, code, models),
        }
        for name, way in ways.items():
            turns[name].append(await _timed(way, store, size))
        shutil.rmtree(here)  # so that the disk is not busy with it during the next run
    await blobs.aclose()
    return {
        name: Turn(*(report.median(list(figures)) for figures in zip(*found, strict=True)))
        for name, found in turns.items()
    }


async def _timed(way: Coroutine[Any, Any, None], store: Store, size: int) -> Turn:
    own, stores, began = time.process_time(), store.cpu_s(), time.perf_counter()
    await way
    took, gb = time.perf_counter() - began, size / 1e9
    return Turn(size / took, (time.process_time() - own) / gb, (store.cpu_s() - stores) / gb)


def _get_ranges(client: Any, parts: list[ArtifactPart], *, check: bool) -> None:
    """All ranges, by 16 threads."""
    with ThreadPoolExecutor(GETS) as threads:
        list(threads.map(lambda part: _get_range(client, part, check=check), parts))


def _get_range(client: Any, part: ArtifactPart, *, check: bool) -> None:
    key = f"{TENANT}/{part.sha256}"
    body = client.get_object(Bucket=BUCKET, Key=key, Range=f"bytes=0-{part.size - 1}")["Body"]
    digest = hashlib.sha256()
    while piece := body.read(2**20):
        if check:
            digest.update(piece)
    assert not check or digest.hexdigest() == part.sha256


async def _read_parts(blobs: S3Blobs, parts: list[ArtifactPart]) -> None:
    """Read all of them as the loader does, as many at once, and check them."""
    turns = asyncio.Semaphore(OF_ONE)

    def check(source: BlobSource, part: ArtifactPart) -> None:
        digest = hashlib.sha256()
        read_pieces(source, digest.update)
        assert digest.hexdigest() == part.sha256

    async def read(part: ArtifactPart) -> None:
        async with turns:
            await blobs.read_whole(TENANT, part.sha256, lambda source: check(source, part))

    async with asyncio.TaskGroup() as group:
        for part in parts:
            group.create_task(read(part))


if __name__ == "__main__":
    main()
