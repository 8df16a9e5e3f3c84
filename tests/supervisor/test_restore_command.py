"""`pilotlight restore`, as a program."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from pilotlight_core.bus import connect
from pilotlight_core.model.subjects import TENANCY_BUCKET
from pilotlight_gateway.backups.backup_manifest import digest_of, read_manifest, write_manifest
from pilotlight_supervisor import restore_command
from pilotlight_supervisor.embedded_bus import embedded_nats
from pilotlight_supervisor.restore_mark import MARK, incomplete_restore
from tests.supervisor.test_backup_command import copied


async def restored(copy: Path, *words: str) -> int:
    return await asyncio.to_thread(restore_command.main, [str(copy), *words])


async def test_a_platform_comes_back_in_an_empty_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its bus is started for it, and stopped; a second time there is one."""
    copy, state = tmp_path / "copy", tmp_path / "new"
    assert await copied(tmp_path / "state", str(copy)) == 0

    assert await restored(copy, f"--state-dir={state}") == 0
    assert "revoke" in capsys.readouterr().out
    assert await restored(copy, f"--state-dir={state}") == 1
    assert "is there already" in capsys.readouterr().err

    assert (state / "keys" / "private").read_text() == "k"
    assert incomplete_restore(state) == ""
    async with embedded_nats(state / "nats") as server, connect(server.url, name="gateway") as bus:
        assert await bus.kv(TENANCY_BUCKET).get("tenant.acme") is not None


async def test_a_backup_is_checked_without_restoring_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether it is whole; damaged, nothing is restored from it."""
    copy, state = tmp_path / "copy", tmp_path / "new"
    assert await copied(tmp_path / "state", str(copy)) == 0

    assert await restored(copy, "--check") == 0
    assert "is whole" in capsys.readouterr().out
    with (copy / "KV_TENANCY.stream").open("ab") as file:
        file.write(b"x")
    for words in (("--check",), (f"--state-dir={state}",)):
        assert await restored(copy, *words) == 1
        assert "damaged" in capsys.readouterr().err
    assert not state.exists()


async def test_a_bus_of_others_is_named_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several hosts: an empty nats-server that runs."""
    copy, state = tmp_path / "copy", tmp_path / "new"
    assert await copied(tmp_path / "state", str(copy)) == 0

    async with embedded_nats(tmp_path / "hosts") as server:
        monkeypatch.setenv("PILOTLIGHT_NATS_URL", server.url)
        assert await restored(copy, f"--state-dir={state}", "--replicas=1") == 0
        async with connect(server.url, name="gateway") as bus:
            assert await bus.kv(TENANCY_BUCKET).get("tenant.acme") is not None
    assert not (state / "nats").exists()


async def test_what_was_restored_in_part_is_not_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It names itself to the next restore; one that was refused before it wrote anything leaves no mark."""
    copy, state = tmp_path / "copy", tmp_path / "new"
    assert await copied(tmp_path / "state", str(copy)) == 0
    spoil(copy, "KV_TENANCY")

    assert await restored(copy, f"--state-dir={state}") == 1
    assert "does not take KV_TENANCY" in capsys.readouterr().err
    async with embedded_nats(state / "nats") as server, connect(server.url, name="x", makes_streams=False) as bus:
        assert "RESTORING" in await bus.jetstream.names()  # so that gateways of other hosts do not start on it
    assert await restored(copy, f"--state-dir={state}") == 1
    assert f"{state / MARK}: the restore of {copy} did not come to its end" in capsys.readouterr().err
    (tmp_path / "mine" / "keys").mkdir(parents=True)
    (tmp_path / "mine" / "keys" / "one").write_text("k")
    assert await restored(copy, f"--state-dir={tmp_path / 'mine'}") == 1
    assert incomplete_restore(tmp_path / "mine") == ""


def spoil(copy: Path, name: str) -> None:
    """Make a whole backup of something that no bus takes."""
    manifest = read_manifest(copy)
    (copy / f"{name}.stream").write_bytes(b"no snapshot")
    size, digest = digest_of(copy / f"{name}.stream")
    pieces = tuple(
        msgspec.structs.replace(piece, bytes=size, sha256=digest) if piece.name == name else piece
        for piece in manifest.pieces
    )
    write_manifest(copy, msgspec.structs.replace(manifest, pieces=pieces))
