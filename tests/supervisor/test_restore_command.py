"""`pilotlight restore`, as a program."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pilotlight_core.bus import connect
from pilotlight_core.model.subjects import TENANCY_BUCKET
from pilotlight_supervisor import restore_command
from pilotlight_supervisor.embedded_bus import embedded_nats
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
