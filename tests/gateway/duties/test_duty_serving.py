"""The duties beside the gateways."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pilotlight_core.bus import connect
from pilotlight_core.host.blobs import FolderBlobs
from pilotlight_core.host.foundations import Foundation, Foundations
from pilotlight_core.model.ids import token
from pilotlight_gateway.duties.duty_serving import run_forever


async def test_a_duty_that_fails_begins_anew_and_ends_no_other() -> None:
    """However it fails; it ends with its process."""
    begun = 0
    third = asyncio.Event()

    async def run() -> None:
        nonlocal begun
        begun += 1
        if begun == 1:
            raise ValueError("nobody expected this")
        if begun == 2:
            raise ExceptionGroup("nor these", [KeyError("this")])
        third.set()
        await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        duty = group.create_task(run_forever("a duty", run, pause_s=0.0))
        async with asyncio.timeout(30):
            await third.wait()
        duty.cancel()

    assert begun == 3


async def test_duties_with_another_ledger_or_store_are_refused(server_url: str, tmp_path: Path) -> None:
    """Before they fold anything into it; they say which one, and what to do."""
    region, state = f"r{token(8)}", tmp_path / "state"
    shared = FolderBlobs(state / "blobs")
    async with connect(server_url, name="foundation-test") as bus:
        registered = Foundation(blob_store=await shared.store_id(create=True), ledger="another")
        await Foundations(bus, region=region).register(registered)

    async def refused(*flags: str) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pilotlight_gateway.duties", "--nats-url", server_url, "--region", region),
            *("--state-dir", str(state), *flags),
            stderr=asyncio.subprocess.PIPE,
        )
        _, errors = await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == 1
        assert b"Traceback" not in errors
        return errors

    assert b"the ledger that this process has" in await refused()
    assert b"same --blob-url" in await refused("--blob-url", f"file://{tmp_path / 'else'}")
