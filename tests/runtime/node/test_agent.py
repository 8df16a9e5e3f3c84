"""The agent as a whole: bind, run, end."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import msgspec

from pilotlight_core.host.signing import Signer
from pilotlight_core.model import values
from pilotlight_core.model.devices import cpu_price
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.call_messages import Outcome, Refusal, is_misconfigured
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.messages.usage import LeaseState, UsageEvent
from pilotlight_runtime.devices.cpu_slots import usable_cores
from pilotlight_runtime.metering.usage_log import UsageLog, UsageRecord
from pilotlight_runtime.metering.usage_metering import boot_id, boot_ns
from tests.runtime.harness import TENANT, Harness, agent, everybody, listener

GREET = """
def f(name="world"):
    print("greeting", name)
    return f"Hello, {name}!"
"""


async def test_a_bound_container_answers_calls(world: Harness) -> None:
    """Bind, ready, run, ended: with what it cost and where the time went."""
    container = await world.bind(await world.deploy(GREET))

    call = world.run(container, name="Ada")

    assert await call.output() == "Hello, Ada!"
    ended = await call.ended()
    assert ended.spent is not None
    assert ended.spent.ns > 0
    assert ended.spent.price == cpu_price(usable_cores())
    assert 0 < ended.stages.execute_ms <= ended.stages.total_ms
    assert call.started
    timeline = world.credits[container][-1].timeline
    assert {"manifest", "stage", "import", "enter"} <= timeline.keys()
    assert world.credits[container][-1].state is ContainerState.READY


async def test_a_blank_becomes_the_container(world: Harness) -> None:
    """A blank that is ready is bound without starting a sandbox, and another one is made in its place."""
    await world.report(lambda report: report.blanks.get("default") == 1)

    container = await world.bind(await world.deploy(GREET))

    timeline = world.credits[container][-1].timeline
    assert "blank" in timeline
    assert "sandbox" not in timeline
    assert sum(timeline.values()) < 1_000
    await world.report(lambda report: report.blanks.get("default") == 0)
    await world.report(lambda report: report.blanks.get("default") == 1)


async def test_the_tenants_exception_comes_back_as_text(world: Harness) -> None:
    """A function that raises ends the call, not the container."""
    container = await world.bind(await world.deploy("def f(n):\n    return 1 / n\n"))

    ended = await world.run(container, n=0).ended()

    assert ended.outcome is Outcome.RAISED
    assert ended.started
    assert ended.error is not None
    assert ended.error.type == "ZeroDivisionError"
    assert "return 1 / n" in ended.error.traceback
    assert await world.run(container, n=4).output() == 0.25


async def test_a_module_that_does_not_import_is_told_with_its_traceback(world: Harness) -> None:
    """The container is gone, with the tenant's error in its last credit and in the log."""
    version = await world.deploy("import nothing_of_that_name\n")

    container = await world.bind(version, state=ContainerState.GONE)

    gone = world.credits[container][-1]
    assert gone.error is not None
    assert gone.error.type == "ModuleNotFoundError"
    async with asyncio.timeout(30):  # it is said again each second, also when the process has ended since
        while sum(credit.state is ContainerState.GONE for credit in world.credits[container]) < 3:
            await world.news()
    reasons = {credit.reason for credit in world.credits[container] if credit.state is ContainerState.GONE}
    assert reasons == {"import failed"}
    lines = await world.logs(lambda lines: any("import failed" in line.text for line in lines))
    assert lines[0].stream == "platform"


async def test_a_start_that_takes_too_long_is_ended(world: Harness) -> None:
    """startup_timeout bounds the whole start, and the tenant is told."""
    version = await world.deploy("import time\ntime.sleep(60)\n", startup_timeout=0.5)

    container = await world.bind(version, state=ContainerState.GONE)

    gone = world.credits[container][-1]
    assert gone.reason == "not ready within 0.5 s"
    assert gone.error is not None


async def test_a_damaged_file_is_refused(world: Harness) -> None:
    """What the blob store holds must be what was signed, byte for byte."""
    version = await world.deploy(GREET)
    path = world.blobs.path(TENANT, version.manifest.files[0].sha256)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"Hello", b"HELLO"))

    container = await world.bind(version, state=ContainerState.GONE)

    gone = world.credits[container][-1]
    assert is_misconfigured(gone.error)  # no tenant can mend it
    assert gone.reason.startswith("could not be started: ")
    assert "deploy again" not in gone.reason


async def test_a_manifest_of_somebody_else_is_refused(world: Harness) -> None:
    """Only the platform's signature counts, and only for the version that was commanded."""
    version = await world.deploy(GREET)
    forged = await world.store(version.manifest, signer=Signer.load_or_create(world.folder / "other"))
    other = await world.deploy(GREET.replace("Hello", "Bye"))
    swapped = msgspec.structs.replace(world.bind_of(other), manifest_sha256=version.blob)

    container = await world.bind(forged, state=ContainerState.GONE)
    assert (await world.command(swapped)).ok
    gone = await world.credit(swapped.container, ContainerState.GONE)

    assert "not trusted here" in world.credits[container][-1].reason
    assert "not of " in gone.reason
    assert is_misconfigured(world.credits[container][-1].error)
    assert is_misconfigured(gone.error)


async def test_large_inputs_and_answers_take_the_side_door(world: Harness) -> None:
    """What is too large for a frame is fetched from the origin's listener, and left there."""
    container = await world.bind(await world.deploy("def f(data):\n    return data + data\n"))
    async with listener() as bodies:
        data = b"x" * 300_000
        place = bodies.expect("acme")

        body = bodies.offer(values.encode({"data": data}))
        call = world.run(container, {"input": b"", "body": body, "answer": place})
        ended = await call.ended()

        assert ended.outcome is Outcome.OK
        assert ended.output == b""
        assert ended.stages.fetch_ms > 0
        answer = bodies.answer(place)
        assert answer is not None
        assert len(answer) == ended.answer_size
        assert values.decode(answer) == data + data


async def test_a_body_that_is_gone_is_refused_and_an_answer_that_nobody_takes_is_an_error(world: Harness) -> None:
    """A call whose input cannot be had never starts; one whose answer cannot be left has failed."""
    container = await world.bind(await world.deploy("def f(size):\n    return b'x' * size\n"))
    async with listener() as bodies:
        taken = bodies.offer(b"read before")
        bodies.withdraw(taken)
        assert (await world.run(container, {"input": b"", "body": taken}).refused()).reason is Refusal.UNREADABLE
        assert (await world.run(container, {"answer": bodies.expect("acme")}, size=10).ended()).outcome is Outcome.OK

        too_large = await world.run(container, {"answer": bodies.expect("acme")}, size=12 * 10**6).ended()

        assert too_large.outcome is Outcome.BAD_OUTPUT
        assert (await world.run(container, size=300_000).ended()).outcome is Outcome.BAD_OUTPUT


async def test_a_last_frame_that_nobody_heard_is_sent_again(world: Harness) -> None:
    """A gateway that listens a moment too late still gets the answer."""
    container = await world.bind(await world.deploy(GREET))
    late = f"gw-{token(6)}"

    call = world.run(container, {"gateway": late}, name="late")
    await world.report(lambda report: report.containers and report.containers[0].calls)
    await world.listen_as(late)

    assert await call.output() == "Hello, late!"


async def test_usage_is_complete_and_sums_to_the_receipts(world: Harness) -> None:
    """Every nanosecond of every slice is metered once; a call's shares are what its receipt says."""
    container = await world.bind(await world.deploy("import time\ndef f():\n    time.sleep(0.05)\n"))
    ended = [await world.run(container).ended() for _ in range(3)]

    events = await world.usage(lambda events: sum(bool(share.ended) for e in events for share in e.shares) == 3)

    for slice_id in ("cpu-0", "cpu-1"):
        line = [event for event in events if event.slice == slice_id]
        assert all(after.t0 == before.t1 for before, after in itertools.pairwise(line))
    shares = [share for event in events for share in event.shares]
    for frame in ended:
        assert frame.spent is not None
        assert sum(share.ns for share in shares if share.call_id == frame.call_id) == frame.spent.ns
    assert {event.tenant for event in events} == {"", TENANT}


async def test_a_new_agent_hands_in_what_the_old_one_left(server_url: str, tmp_path: Path) -> None:
    """Usage that was written and not stored is stored at the next start, and the gap is the operator's."""
    async with everybody(server_url, tmp_path) as world:
        left = leave_usage(tmp_path / "node" / world.node / "usage", world.node)

        async with agent(world):
            events = await world.usage(lambda events: len({event.id.partition(".")[0] for event in events}) == 2)

    assert left in events
    line = [event for event in events if event.slice == left.slice]
    assert line[1].t0 == left.t1
    assert line[1].tenant == ""


async def test_the_agent_says_when_it_ends(server_url: str, tmp_path: Path) -> None:
    """On stopping, calls finish, containers go, and the last report says that it was the last."""
    async with everybody(server_url, tmp_path) as world:
        async with agent(world):
            version = await world.deploy("import time\ndef f():\n    time.sleep(0.3)\n    return 1\n")
            container = await world.bind(version)
            call = world.run(container)
            await call.wait(1)

        assert await call.output() == 1
        last = await world.report(lambda report: report.stopped)
        assert last.containers == ()
        assert not list((tmp_path / "node" / world.node / "sandboxes").iterdir())


def leave_usage(folder: Path, node: str) -> UsageEvent:
    """What an agent that was killed a second ago has written and not stored."""
    now = boot_ns()
    event = UsageEvent(
        id="dead.cpu-0.1",
        node=node,
        device="cpu",
        slice="cpu-0",
        ppm=500_000,
        price="cpu",
        state=LeaseState.IDLE,
        t0=now - 2 * 10**9,
        t1=now - 10**9,
        ended_at=0.0,
        tenant=TENANT,
    )
    log = UsageLog(folder, boot_id())
    log.append([UsageRecord(id="dead.1", tenant=TENANT, events=(event,))])
    log.close()
    return event


async def test_files_that_are_not_in_the_store_are_the_platforms_fault(world: Harness) -> None:
    """As where the node's folder is not the gateways': the tenant is not told to mend its code."""
    version = await world.deploy(GREET)
    world.blobs.path(TENANT, version.manifest.files[0].sha256).unlink()

    container = await world.bind(version, state=ContainerState.GONE)

    gone = world.credits[container][-1]
    assert is_misconfigured(gone.error)
    assert gone.reason.startswith("could not be started: app.py is not in the blob store")
