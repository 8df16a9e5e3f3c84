"""The start of a container: with a real guest, and what each failure of it is."""

from __future__ import annotations

from typing import cast

import pytest

from pilotlight_core.host.blobs import BlobsDown, NoBlobStore
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.call_messages import MISCONFIGURED, Outcome, RemoteError
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_runtime.containers.container_start import ContainerStart, StartFailed, failure_of
from pilotlight_runtime.containers.files.bundle import CannotVerify
from pilotlight_runtime.containers.provisioner import Provisioner
from pilotlight_runtime.guest import frames as guest
from pilotlight_runtime.sandbox.sandbox_errors import SandboxError
from tests.builders.nodes import bind, cpu_slot
from tests.runtime.harness import Harness


async def test_an_import_that_never_ends_is_ended_by_a_drain(world: Harness) -> None:
    """Nothing runs in it that could be waited for."""
    version = await world.deploy("import time\ntime.sleep(1_000)\ndef f(): ...", startup_timeout=1_000.0)
    container = await world.bind(version, state=ContainerState.LOADING)

    assert (await world.drain(container, within_ms=1_000_000)).ok

    gone = await world.credit(container, ContainerState.GONE)
    assert gone.error is None
    await world.report(lambda report: not any(s.container for s in report.slices))


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (StartFailed("import failed", RemoteError("ImportError", "no module")), "ImportError"),
        (CannotVerify("a digest differs"), MISCONFIGURED),
        (NoBlobStore("there is no store"), MISCONFIGURED),
        (BlobsDown("the store does not answer"), None),
        (SandboxError("bwrap is missing"), None),
        (OSError("no space left"), None),
        (BadInput("the spec is odd"), "BadInput"),
    ],
)
def test_a_tenant_is_shown_what_it_can_mend(error: Exception, shown: str | None) -> None:
    """Not what is the platform's fault; the reason of both is kept."""
    failed = failure_of(error)

    assert (failed.error.type if failed.error else None) == shown
    assert failed.reason


async def test_a_guest_says_each_of_its_steps_once_and_no_longer_than_they_can_have_taken(anyio_backend: str) -> None:
    """Its timeline is public, and the guest is not trusted."""
    now, changes, kills = [10.0], list[None](), list[str]()
    start = ContainerStart(
        bind("c1"),
        cpu_slot(0),
        provisioner=cast("Provisioner", None),
        changed=lambda: changes.append(None),
        kill=kills.append,
        clock=lambda: now[0],
    )
    now[0] = 12.0

    assert start.on_frame(guest.LoadStep(name="import", ms=1_500.0))
    assert start.on_frame(guest.LoadStep(name="enter", ms=1e9))
    assert start.timeline == {"import": 1_500.0, "enter": 2_000.0}
    assert not kills

    assert start.on_frame(guest.LoadStep(name="import", ms=1.0))
    assert kills == ["the guest reported an unknown step"]
    assert len(changes) == 2
    assert start.on_frame(guest.Loaded())
    assert not start.on_frame(guest.Loaded())
    assert not start.on_frame(guest.Result(call_id="a", outcome=Outcome.OK))
