"""All containers of a node: what is bound, what is refused, and where calls go."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_core.model.messages.call_messages import Cancel, Outcome, Reconcile, Refusal
from pilotlight_core.model.messages.node_messages import ContainerState, HostShare, Keep, Stop
from pilotlight_core.model.messages.usage_facts import Purpose
from pilotlight_runtime.calls import slot_table
from pilotlight_runtime.containers import container as container_module
from tests.runtime.harness import Harness, agent, everybody
from tests.waiting import until_found

GIB = 2**30
GREET = """
def f(name="world"):
    return f"Hello, {name}!"
"""
SLEEP = """
def f(seconds):
    import time
    time.sleep(seconds)
"""


async def test_calls_beyond_the_slots_are_refused(world: Harness) -> None:
    """The agent's slot count is the hard truth, and a refusal is followed by a credit that shows it."""
    container = await world.bind(await world.deploy("import time\ndef f():\n    time.sleep(0.2)\n"))

    first, second = world.run(container), world.run(container)

    assert (await second.refused()).reason is Refusal.NO_SLOT
    assert (await first.ended()).outcome is Outcome.OK


async def test_what_an_agent_cannot_take_is_refused_with_its_reason(world: Harness) -> None:
    """Unknown containers, an older home's grants, and copies of a grant never reach a guest."""
    container = await world.bind(await world.deploy(GREET))
    world.remember("c-unknown", container)

    assert (await world.run("c-unknown").refused()).reason is Refusal.GONE
    done = world.run(container)
    await done.ended()
    assert (await world.run(container, {"epoch": world.epoch - 1}).refused()).reason is Refusal.STALE_EPOCH
    grant = next(frame.grant_number for frame in done.frames)
    assert (
        await world.run(container, {"call_id": done.id, "grant_number": grant}).refused()
    ).reason is Refusal.DUPLICATE
    assert (await world.run(container, {"start_within_ms": 0.0}).refused()).reason is Refusal.EXPIRED


async def test_a_copy_of_a_running_grant_leaves_it_its_slot(world: Harness) -> None:
    """It is refused as what it is, and nothing else gets in."""
    container = await world.bind(await world.deploy(SLEEP))
    call = world.run(container, seconds=0.5)
    await call.wait(1)
    copy = world.run(container, {"call_id": call.id, "grant_number": call.frames[0].grant_number}, seconds=0)

    assert (await copy.refused()).reason is Refusal.DUPLICATE
    assert (await world.run(container, seconds=0).refused()).reason is Refusal.NO_SLOT
    await copy.wait(2)
    assert copy.frames[1].outcome is Outcome.OK


async def test_commands_are_fenced_and_idempotent(world: Harness) -> None:
    """A repeated bind changes nothing; an old controller, a taken slice and a dead container are refused."""
    version = await world.deploy(GREET)
    bind = world.bind_of(version)
    assert (await world.command(bind)).ok
    await world.credit(bind.container, ContainerState.READY)

    assert (await world.command(bind)).ok
    assert (await world.command(world.bind_of(version))).reason == "slice_taken"
    assert (await world.command(world.bind_of(version, "cpu-9"))).reason == "no_such_slice"
    old = await world.command(world.bind_of(version, "cpu-1", epoch=world.epoch - 1))
    assert (old.reason, old.epoch) == ("stale_epoch", world.epoch)
    assert (await world.command(Stop(epoch=world.epoch, container=bind.container))).ok
    await world.report(lambda report: not any(part.container for part in report.slices))
    assert (await world.command(bind)).reason == "gone"
    assert (await world.command(Stop(epoch=world.epoch, container=bind.container))).reason == "gone"


async def test_what_a_container_is_there_for_is_told_by_the_controller(world: Harness) -> None:
    """Its reports say whether it is there by a guess; one that is gone is nobody's."""
    version = await world.deploy(GREET)
    bind = world.bind_of(version)
    assert (await world.command(bind)).ok
    await world.credit(bind.container, ContainerState.READY)
    for purpose, is_guess in ((Purpose.PREWARM, True), (Purpose.FLOOR, False)):
        assert (await world.command(Keep(epoch=world.epoch, container=bind.container, purpose=purpose))).ok
        await world.report(lambda report, wanted=is_guess: [c.guessed for c in report.containers] == [wanted])
    gone = Keep(epoch=world.epoch, container="con_gone", purpose=Purpose.FLOOR)
    assert (await world.command(gone)).reason == "gone"


async def test_plain_processes_serve_one_tenant_only(world: Harness) -> None:
    """A sandbox without walls refuses a second tenant."""
    await world.bind(await world.deploy(GREET))

    other = await world.deploy(GREET, tenant="rival")

    assert (await world.command(world.bind_of(other, "cpu-1"))).reason == "other_tenant"


async def test_blanks_wait_while_containers_need_the_processors(
    world: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one starts, until its first call has come, and while so many have calls that no processor is left."""
    containers = world.agent._parts.containers
    monkeypatch.setattr(containers, "_cores", 2)
    monkeypatch.setattr(container_module, "FRESH_S", 60.0)

    def is_waited() -> bool:
        return containers.needs_processors

    assert not is_waited()
    container = await world.bind(await world.deploy(SLEEP))
    assert is_waited()  # its first call is about to come

    call = world.run(container, seconds=0.3)
    await call.wait(1)
    assert is_waited()
    monkeypatch.setattr(containers, "_cores", 8)
    assert not is_waited()
    await call.ended()


async def test_an_origin_may_ask_what_became_of_its_calls(world: Harness) -> None:
    """A grant that never came is answered as not started, and cannot start later."""
    container = await world.bind(await world.deploy(GREET))
    lost = world.expect("call_lost")

    instance = world.reports[-1].instance
    ask = Reconcile(gateway=world.gateway, calls=("call_lost",), grants={"call_lost": 10_000}, instance=instance)
    world.control(ask)

    ended = await lost.ended()
    assert (ended.outcome, ended.started) == (Outcome.DIED, False)
    assert (
        await world.run(container, {"call_id": "call_lost", "grant_number": 10_000}).refused()
    ).reason is Refusal.DUPLICATE


async def test_a_name_that_is_no_name_is_refused(world: Harness) -> None:
    """Ids become folder names and subjects."""
    version = await world.deploy(GREET)

    assert (await world.command(world.bind_of(version, container="../c"))).reason == "bad_name"


async def test_an_agent_that_ends_takes_no_container(world: Harness) -> None:
    """Binds are refused from the first moment on, while what runs still ends."""
    version = await world.deploy(SLEEP)
    container = await world.bind(version)
    call = world.run(container, seconds=0.3)
    await call.wait(1)
    containers = world.agent._parts.containers

    containers.draining = True

    assert (await world.command(world.bind_of(version, "cpu-1"))).reason == "draining"
    assert (await call.ended()).outcome is Outcome.OK


async def test_a_cancel_reaches_the_container_that_holds_the_call(world: Harness) -> None:
    """Its answer is dropped, its neighbour's is not; the cancel of a call that no container holds is no error."""
    container = await world.bind(await world.deploy(SLEEP, max_inputs=2))
    cancelled, other = world.run(container, seconds=0.3), world.run(container, seconds=0.3)
    await cancelled.wait(1)

    world.control(Cancel(call_id="call_unknown"))
    world.control(Cancel(call_id=cancelled.id))

    assert (await cancelled.ended()).outcome is Outcome.CANCELLED
    assert (await other.ended()).outcome is Outcome.OK


async def test_calls_that_their_gateway_does_not_list_are_cancelled(
    world: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their origin has forgotten them; those that it lists go on."""
    monkeypatch.setattr(slot_table, "ORPHANED_AFTER_S", 0.0)
    container = await world.bind(await world.deploy(SLEEP, max_inputs=2))
    listed, orphan = world.run(container, seconds=0.5), world.run(container, seconds=0.5)
    await listed.wait(1)
    await orphan.wait(1)

    world.control(Reconcile(gateway=world.gateway, calls=(listed.id,), grants={}))

    assert (await orphan.ended()).outcome is Outcome.CANCELLED
    assert (await listed.ended()).outcome is Outcome.OK


async def test_more_than_the_host_has_is_promised_to_nobody(
    server_url: str, tmp_path: Path, anyio_backend: str
) -> None:
    """Whatever the controller believes: by memory, by cores, until the container before is gone."""
    host = HostShare(cpu_millis=1500, memory=3 * GIB)
    async with everybody(server_url, tmp_path) as world, agent(world, host=host):
        small, large = await world.deploy(GREET), await world.deploy(GREET, memory=2 * GIB, cpu=1.0)
        first = await world.bind(large)

        assert (await world.command(world.bind_of(large, "cpu-1"))).reason == "memory_taken"
        lean = HostShare(cpu_millis=1000, memory=GIB)
        assert (await world.command(world.bind_of(small, "cpu-1", host=lean))).reason == "cpu_taken"
        told = await world.report(lambda report: bool(report.containers))
        assert told.host == host
        assert [each.host for each in told.containers] == [HostShare(cpu_millis=1000, memory=2 * GIB)]
        await world.command(Stop(epoch=world.epoch, container=first))

        async def is_taken() -> bool:
            return (await world.command(world.bind_of(large, "cpu-1"))).ok

        assert await until_found(is_taken)  # the promise ends a moment after the container


async def test_a_manifest_that_needs_more_than_was_promised_does_not_start(world: Harness) -> None:
    """Else the sum of promises would be of what nobody keeps to."""
    version = await world.deploy(GREET, memory=2 * GIB)
    bind = world.bind_of(version, host=HostShare(cpu_millis=100, memory=GIB))

    assert (await world.command(bind)).ok
    gone = await world.credit(bind.container, ContainerState.GONE)

    assert "it needs 2.0 GiB of host memory and was promised 1.0 GiB" in gone.reason
