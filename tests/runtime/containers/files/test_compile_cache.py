"""What versions' containers have compiled on a node: taken piece by piece, kept whole, laid out for the next ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pilotlight_core.model import values
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.rehearsals.rehearsal import Rehearsal, WarmupExample
from pilotlight_runtime.containers.files.compile_cache import FILE_BYTES, CompileCache, is_path
from pilotlight_runtime.guest import frames as guest
from pilotlight_runtime.guest.frames import CompilePiece
from tests.runtime.harness import Harness, harness
from tests.waiting import until


def texts_in(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


async def given(cache: CompileCache, tenant: str, version: str, **files: str) -> None:
    """Hand these files over."""
    handover = cache.begin(tenant, version)
    for path, text in files.items():
        assert await handover.take(CompilePiece(path=path.replace("__", "/"), data=text.encode(), ends=True))
    await handover.commit()
    assert cache.coming == 0


async def laid_out(cache: CompileCache, tenant: str, version: str, into: Path) -> dict[str, str]:
    await cache.lay_out(tenant, version, made(into))
    return texts_in(into)


async def test_a_file_has_its_name_once_it_is_on_the_disk(
    tmp_path: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that stops leaves none that is empty."""
    flushed = list[str]()

    def fsync(file: Any) -> None:
        assert names_in(tmp_path / "acme" / "ver_1") == sorted(flushed)
        flushed.append(Path(file.name).name)

    monkeypatch.setattr(os, "fsync", fsync)
    await given(CompileCache(tmp_path, 10**6), "acme", "ver_1", a="1", b="2")
    assert names_in(tmp_path / "acme" / "ver_1") == flushed == ["a", "b"]


async def test_empty_files_are_not_free(tmp_path: Path, anyio_backend: str) -> None:
    """Else starts that leave thousands of them would use up the disk, within any limit of bytes."""
    cache = CompileCache(tmp_path, 3 * FILE_BYTES, most_bytes=2 * FILE_BYTES)
    await given(cache, "acme", "ver_1", a="", b="")
    assert cache.size_of("acme", "ver_1") == 2 * FILE_BYTES
    full = cache.begin("acme", "ver_1")
    assert not await full.take(CompilePiece(path="c", data=b"", ends=True))
    await given(cache, "acme", "ver_2", a="", b="")
    assert names_in(tmp_path / "acme") == ["ver_2"]
    assert CompileCache(tmp_path, 3 * FILE_BYTES).size_of("acme", "ver_2") == 2 * FILE_BYTES


async def test_files_are_there_for_the_next_container_and_nobody_else(tmp_path: Path, anyio_backend: str) -> None:
    """Of the same version of the same tenant; also after the agent has started anew."""
    cache = CompileCache(tmp_path / "compiled", 1_000, file_bytes=0)
    await given(cache, "acme", "ver_1", triton__a__x="12345", cuda__index="old")
    await given(cache, "acme", "ver_1", cuda__index="newer")
    found = {"cuda/index": "newer", "triton/a/x": "12345"}

    assert await laid_out(cache, "acme", "ver_1", tmp_path / "1") == found
    assert await laid_out(cache, "acme", "ver_2", tmp_path / "2") == {}
    assert await laid_out(cache, "rival", "ver_1", tmp_path / "3") == {}
    assert (tmp_path / "1" / "cuda" / "index").stat().st_mode & 0o777 == 0o444
    (tmp_path / "compiled" / "acme" / "ver_1.abc").mkdir()
    again = CompileCache(tmp_path / "compiled", 1_000, file_bytes=0)
    assert again.size_of("acme", "ver_1") == cache.size_of("acme", "ver_1") == 10
    assert await laid_out(again, "acme", "ver_1", tmp_path / "4") == found
    assert names_in(tmp_path / "compiled" / "acme") == ["ver_1"]


async def test_a_start_that_fails_leaves_nothing(tmp_path: Path, anyio_backend: str) -> None:
    """Not even a file that was whole."""
    cache = CompileCache(tmp_path, 1_000, file_bytes=0)
    handover = cache.begin("acme", "ver_1")
    assert await handover.take(CompilePiece(path="a", data=b"1", ends=True))
    await handover.discard()
    await handover.discard()

    assert names_in(tmp_path / "acme") == []
    assert cache.tenants() == []


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../a", "a/../b", "a//b", "./a", "a/", "a\0b", "a\nb", "x/" * 12 + "x", "x" * 300, "é" * 200],
)
def test_a_path_stays_below_its_folder(path: str) -> None:
    """Guests are not believed."""
    assert not is_path(path)


def test_the_paths_of_compilers_are_taken() -> None:
    """Of Inductor, Triton and CUDA."""
    assert is_path("inductor/fxgraph/ab/fabc/xyz")
    assert is_path("triton/ABCDEF/__grp__triton_poi_fused_0.json")
    assert is_path("cuda/8/f/0123456789abcdef")


async def test_what_breaks_a_rule_or_a_bound_is_not_taken(
    tmp_path: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the hand-over is over; what was whole before is kept."""
    cache = CompileCache(tmp_path, 1_000, most_bytes=10, most_files=3, file_bytes=0)

    async def takes(*pieces: tuple[str, bytes, bool]) -> list[bool]:
        handover = cache.begin("acme", "ver_1")
        told = [await handover.take(CompilePiece(path=path, data=data, ends=ends)) for path, data, ends in pieces]
        await handover.discard()
        return told

    assert await takes(("../a", b"1", True)) == [False]
    assert await takes(("a", b"1", False)) == [False]
    monkeypatch.setattr(guest, "COMPILE_PIECE", 1)
    assert await takes(("a", b"1", False), ("b", b"2", True)) == [True, False]
    assert await takes(("a", b"1", False), ("a", b"2", True), ("b", b"3", True)) == [True] * 3
    assert await takes(("a", b"123456", True), ("b", b"12345", True)) == [True, False]
    assert await takes(("a", b"", True), ("b", b"", True), ("c", b"", True), ("d", b"", True)) == [True] * 3 + [False]
    assert await takes(("a", b"1", True), ("a/b", b"1", True), ("c", b"", True)) == [True, False, False]
    assert await takes(("a", b"1", True), ("a", b"2", True)) == [True, False]
    await given(cache, "acme", "ver_1", a="123456")
    assert await takes(("b", b"12345", True)) == [False]


async def test_hand_overs_have_one_bound_together(tmp_path: Path, anyio_backend: str) -> None:
    """However many containers start at a time; what has ended counts no more."""
    cache = CompileCache(tmp_path, 10, file_bytes=0)
    first, second = cache.begin("acme", "ver_1"), cache.begin("acme", "ver_2")
    piece = CompilePiece(path="a", data=b"123456", ends=True)
    assert await first.take(piece)
    assert not await second.take(piece)
    await first.discard()
    assert await second.take(piece)
    await second.discard()
    assert cache.coming == 0


async def test_a_full_disk_is_left_alone(tmp_path: Path, anyio_backend: str) -> None:
    """A start needs nothing of it."""
    cache = CompileCache(tmp_path, 1_000, room=lambda _: 0, file_bytes=0)

    assert not await cache.begin("acme", "ver_1").take(CompilePiece(path="a", data=b"", ends=True))


async def test_who_has_the_most_loses_what_it_used_longest_ago(tmp_path: Path, anyio_backend: str) -> None:
    """Nobody drives out what others have less of."""
    cache = CompileCache(tmp_path, 20, file_bytes=0)
    await given(cache, "rival", "ver_9", a="12345")
    await given(cache, "acme", "ver_1", a="12345")
    await given(cache, "acme", "ver_2", a="12345")
    await laid_out(cache, "acme", "ver_1", tmp_path / "out")
    await given(cache, "acme", "ver_3", a="123456")

    assert [version for version in ("ver_1", "ver_2", "ver_3") if cache.size_of("acme", version)] == ["ver_1", "ver_3"]
    assert not (tmp_path / "acme" / "ver_2").exists()
    assert cache.size_of("rival", "ver_9") == 5
    assert cache.drop("acme") == 2
    assert cache.tenants() == ["rival"]


COMPILES = """
import os, pathlib
def f(path="x"):
    folder = pathlib.Path(os.environ["TRITON_CACHE_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    known = sorted(one.name for one in folder.iterdir())
    (folder / path).write_bytes(b"k" * 300_000)
    return known
"""
WARM: dict[str, Any] = {"rehearsal": Rehearsal(warmup=(WarmupExample(inputs=(values.encode({"path": "warm"}),)),))}


async def test_the_next_container_of_a_version_finds_what_the_first_has_compiled(world: Harness) -> None:
    """Before its first call; what calls leave reaches nobody."""
    version = await world.deploy(COMPILES, **WARM)
    first = await world.bind(version)
    assert await world.run(first, path="of-a-call").output() == ["warm"]
    assert "compile" in world.credits[first][-1].timeline

    second = await world.bind(version, "cpu-1")
    assert await world.run(second).output() == ["warm"]
    other = await world.deploy(COMPILES + "# another version\n", **WARM)
    await world.drain(first)
    await world.credit(first, ContainerState.GONE)
    third = await world.bind(other)
    assert await world.run(third, path="y").output() == ["warm"]  # its own
    kept = world.folder / "node" / world.node / "compiled" / "acme"
    assert names_in(kept) == sorted([version.id, other.id])


async def test_what_a_failed_start_has_compiled_is_not_kept(world: Harness) -> None:
    """It may be half of something."""
    source = COMPILES + "\ndef fails(): f('a'); raise ValueError('no')\n"
    version = await world.deploy(
        source, qualname="fails", rehearsal=Rehearsal(warmup=(WarmupExample(inputs=(values.encode({}),)),))
    )
    await world.bind(version, state=ContainerState.GONE)

    kept = world.folder / "node" / world.node / "compiled" / "acme"
    await until(lambda: not names_in(kept))


INDUCTOR = """
import torch
from torch._dynamo.utils import counters
compiled = torch.compile(lambda x: torch.nn.functional.gelu(x @ x.T).softmax(-1) + x.sum())
def f():
    return float(compiled(torch.ones(8, 8)).sum())
def hits():
    f()
    return counters["inductor"]["fxgraph_cache_hit"] + counters["aot_autograd"]["autograd_cache_hit"]
"""


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_what_inductor_has_compiled_is_not_compiled_again(server_url: str, tmp_path: Path) -> None:
    """In a real sandbox, with a real compiler: a minute for the first container, `compile` says how long."""
    async with harness(server_url, tmp_path, sandbox="bubblewrap") as world:
        warm = Rehearsal(warmup=(WarmupExample(inputs=(values.encode({}),)),))
        version = await world.deploy(INDUCTOR, qualname="hits", memory=4 * 2**30, rehearsal=warm)
        hits = []
        for _ in range(2):
            container = await world.bind(version, within=400.0)
            timeline = world.credits[container][-1].timeline
            assert "compile" in timeline
            print(timeline)  # `pytest -s` tells the figures
            hits.append(await world.run(container).output())
            await world.drain(container)
            await world.credit(container, ContainerState.GONE)

        assert (hits[0], hits[1] > 0) == (0, True)
