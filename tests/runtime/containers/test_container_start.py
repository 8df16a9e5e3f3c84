"""The start of a container: with a real guest, and what each failure of it is."""

from __future__ import annotations

from typing import cast

import pytest

from pilotlight import Sim
from pilotlight.definitions.engines.engine_specs import build_engine_spec
from pilotlight_core.host.blobs import BlobsDown, NoBlobStore
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.agent_questions import SecretsAnswer
from pilotlight_core.model.messages.call_messages import MISCONFIGURED, Outcome, RemoteError
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.spec import Manifest, Mode
from pilotlight_core.model.streams.resuming import Resumable
from pilotlight_runtime.containers.container_start import BUILD_FAILED, ContainerStart, StartFailed, failure_of
from pilotlight_runtime.containers.files.bundle import CannotVerify, SignatureRefused
from pilotlight_runtime.containers.provisioner import Provisioner
from pilotlight_runtime.environments.build_sandbox import BuildFailed
from pilotlight_runtime.guest import frames as guest
from pilotlight_runtime.sandbox.sandbox_errors import SandboxError
from tests.builders.nodes import bind, cpu_slot
from tests.builders.package_locks import package_lock
from tests.builders.specs import function_spec, manifest, method
from tests.runtime.harness import TENANT, Harness


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
        (SignatureRefused("its key was revoked"), "SignatureRefused"),
        (NoBlobStore("there is no store"), MISCONFIGURED),
        (BlobsDown("the store does not answer"), None),
        (SandboxError("bwrap is missing"), None),
        (BuildFailed("no such package"), BUILD_FAILED),
        (BuildFailed("no builder", is_tenants=False), None),
        (OSError("no space left"), None),
        (BadInput("the spec is odd"), "BadInput"),
    ],
)
def test_a_tenant_is_shown_what_it_can_mend(error: Exception, shown: str | None) -> None:
    """Not what is the platform's fault; the reason of both is kept."""
    failed = failure_of(error)

    assert (failed.error.type if failed.error else None) == shown
    assert failed.reason


class WithoutPackages:
    """In the place of a provisioner, whose node cannot build what is required."""

    async def build_packages(self, _: Manifest) -> None:
        raise BuildFailed("no such package")


async def test_no_sandbox_waits_for_a_build(anyio_backend: str) -> None:
    """One that fails ends the start before it has any."""
    start = ContainerStart(
        bind("c1"), cpu_slot(0), provisioner=cast("Provisioner", WithoutPackages()), changed=lambda: None,
        kill=lambda _: None, clock=lambda: 0.0,
    )  # fmt: skip
    with pytest.raises(BuildFailed, match="no such package"):
        await start.prepare(manifest(function_spec(), lock=package_lock()), lambda _: None)

    assert start.blank is None
    assert start.timeline == {}


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


async def test_a_guest_hands_over_what_it_has_compiled_one_piece_at_a_time(anyio_backend: str) -> None:
    """One that does not wait for its turn breaks a rule, as does one that has loaded."""
    start = ContainerStart(
        bind("c1"),
        cpu_slot(0),
        provisioner=cast("Provisioner", None),
        changed=lambda: None,
        kill=lambda _: None,
        clock=lambda: 1.0,
    )
    piece = guest.CompilePiece(path="a", data=b"1", ends=False)

    assert start.on_frame(piece)
    assert not start.on_frame(piece)
    assert start.on_frame(guest.Loaded())
    assert not start.on_frame(piece)


USES = """
import os
print("importing with", os.environ["TOKEN"])
def f(fail):
    if fail:
        raise ValueError("wrong: " + os.environ["TOKEN"])
    return os.environ["TOKEN"]
"""


async def test_a_container_is_loaded_with_its_secrets_and_says_which(world: Harness) -> None:
    """Its log and its errors hide them; its timeline has the step."""
    await world.give_secrets(SecretsAnswer(revision="r1"), token="a value of acme")
    container = await world.bind(await world.deploy(USES, secrets={"TOKEN": "token"}))

    assert await world.run(container, fail=False).output() == "a value of acme"
    raised = await world.run(container, fail=True).ended()
    assert raised.error is not None
    assert raised.error.message == "wrong: ***"
    assert "a value" not in raised.error.traceback
    lines = await world.logs(lambda lines: any("Traceback" in line.text for line in lines))
    assert "importing with ***" in [line.text for line in lines]
    assert "a value" not in str(lines)
    report = await world.report(lambda report: bool(report.containers and report.containers[0].secrets))
    assert report.containers[0].secrets == "r1"
    assert "secrets" in report.containers[0].timeline


async def test_a_container_without_a_value_does_not_start_and_says_why(world: Harness) -> None:
    """As what its tenant can mend."""
    await world.give_secrets(SecretsAnswer(reason="missing", missing=("token",)))
    version = await world.deploy(USES, secrets={"TOKEN": "token"})
    gone = await world.bind(version, state=ContainerState.GONE)

    told = world.credits[gone][-1]
    assert told.reason == "could not be started: there is no secret token: run `pilotlight secret set token`"
    assert told.error is not None
    assert told.error.type == MISCONFIGURED


async def test_more_lines_than_can_be_hidden_are_refused(world: Harness) -> None:
    """Before the function has them."""
    many = {f"key{number}": "\n".join(f"{number}-line-{line:04}" for line in range(60)) for number in range(5)}
    await world.give_secrets(SecretsAnswer(revision="r1"), **many)
    version = await world.deploy("def f(): ...", secrets={name.upper(): name for name in many})
    gone = await world.bind(version, state=ContainerState.GONE)

    assert "300 lines together that are hidden in logs, 256 are the most" in world.credits[gone][-1].reason


async def test_a_guest_of_before_gets_no_function_with_secrets(world: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would run it without them."""
    monkeypatch.setattr(guest, "KNOWS_SECRETS", (1, 99))
    await world.give_secrets(SecretsAnswer(revision="r1"), token="a value of acme")
    gone = await world.bind(await world.deploy(USES, secrets={"TOKEN": "token"}), state=ContainerState.GONE)

    assert "is of a release that knows no secrets" in world.credits[gone][-1].reason


async def test_a_guest_of_before_gets_no_resumable_function(world: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would begin a stream anew that was to go on."""
    monkeypatch.setattr(guest, "KNOWS_RESUME", (1, 99))
    spec = function_spec("f", method(mode=Mode.GENERATOR), resumable=Resumable())
    version = await world.store(manifest(spec, tenant=TENANT, app="demo"))
    gone = await world.bind(version, state=ContainerState.GONE)

    assert "is of a release that knows no resumable streams" in world.credits[gone][-1].reason


async def test_a_guest_of_before_gets_no_engine_function(world: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would look for code."""
    monkeypatch.setattr(guest, "KNOWS_ENGINE", (1, 99))
    version = await world.store(manifest(build_engine_spec({"engine": Sim()}, "f"), tenant=TENANT, app="demo"))
    gone = await world.bind(version, state=ContainerState.GONE)

    assert "is of a release that knows no engines" in world.credits[gone][-1].reason
