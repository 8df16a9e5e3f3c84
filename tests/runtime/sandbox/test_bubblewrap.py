"""The walls, tried from inside and seen from the host. Real bubblewrap, no mocks."""

from __future__ import annotations

import os
import platform
import resource
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pilotlight_runtime.sandbox.bubblewrap import BubblewrapLauncher, judge
from pilotlight_runtime.sandbox.cgroup import CgroupEvents
from pilotlight_runtime.sandbox.cgroups import Cgroups
from pilotlight_runtime.sandbox.exec_chain import ENV, find_program
from pilotlight_runtime.sandbox.host_uids import UidPool
from pilotlight_runtime.sandbox.sandbox_errors import SandboxNotStarted, SandboxUnavailable
from pilotlight_runtime.sandbox.sandbox_port import Sandbox, SandboxExit
from pilotlight_runtime.sandbox.sandbox_spec import BASE_ENV, Mount
from tests.runtime.sandbox.conftest import MIB, all_end, limits, read_output, read_value, sleeper

Ask = Callable[..., Awaitable[Any]]
Start = Callable[..., Awaitable[Sandbox]]


async def test_the_network_is_out_of_reach(ask: Ask) -> None:
    """Neither the host's loopback nor the hypervisor answers, and loopback is the only interface."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        told = await ask(
            f"""tell([attempt(socket.create_connection, ("127.0.0.1", {listener.getsockname()[1]}), 1),
                      attempt(socket.create_connection, ("10.0.0.1", 80), 1),
                      attempt(socket.socket, 40, socket.SOCK_STREAM),
                      [name for _, name in socket.if_nameindex()]])"""
        )

    assert told == ["ECONNREFUSED", "ENETUNREACH", "EAFNOSUPPORT", ["lo"]]


async def test_loopback_works_inside(ask: Ask) -> None:
    """Two processes of one container may talk over localhost, as torch.distributed does."""
    assert await ask(
        """server = socket.create_server(("localhost", 0))
client = socket.create_connection(server.getsockname(), 1)
tell(client.getpeername()[0])"""
    ) == ("127.0.0.1")


async def test_every_place_but_tmp_and_shm_is_read_only(ask: Ask) -> None:
    """Also the code folder and the interpreter."""
    told = await ask(
        """import sys
venv = os.path.dirname(os.path.dirname(sys.executable))
places = ["/", "/etc", "/usr", "/dev", "/run", "/app", venv, sys.base_prefix, "/tmp", "/dev/shm"]
tell({place: attempt(open, place + "/x", "w") for place in places})"""
    )

    assert {place for place, outcome in told.items() if outcome == "done"} == {"/tmp", "/dev/shm"}
    assert set(told.values()) == {"done", "EROFS"}


async def test_nothing_of_the_host_is_visible_but_what_was_mounted(ask: Ask) -> None:
    """Neither its users' passwords nor its devices."""
    told = await ask("tell([os.listdir('/'), os.listdir('/etc'), os.listdir('/dev')])")

    system = {"app", "bin", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "tmp", "usr"}
    assert set(told[0]) <= system | {Path(path).parts[1] for path in (sys.prefix, sys.base_prefix)}
    assert "shadow" not in told[1]
    assert not [name for name in told[2] if name.startswith(("fuse", "kvm", "vda", "mem", "loop", "nvidia"))]


async def test_tmp_and_shm_are_capped(ask: Ask) -> None:
    """Each has room for `tmp_bytes`."""
    told = await ask(
        """def fill(path):
    written = 0
    with open(path, "wb", buffering=0) as file:
        try:
            while True: written += file.write(bytes(1 << 20))
        except OSError as error:
            return [written, errno.errorcode[error.errno]]
tell([fill("/tmp/x"), fill("/dev/shm/x")])"""
    )

    assert told == [[16 * MIB, "ENOSPC"], [16 * MIB, "ENOSPC"]]


async def test_other_processes_are_invisible(ask: Ask) -> None:
    """Only the sandbox's own two can be listed or signalled."""
    told = await ask(
        f"tell([sorted(p for p in os.listdir('/proc') if p.isdigit()), attempt(os.kill, {os.getpid()}, 0)])"
    )

    assert told == [["1", "2"], "ESRCH"]


async def test_the_environment_is_clean(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the agent has in its environment is in no environment that tenant code can read."""
    monkeypatch.setenv("PILOTLIGHT_TEST_SECRET", "sesame")

    told = await ask(
        """paths = ["/proc/1/environ", "/proc/self/environ"]
seen = [open(path).read() for path in paths if os.access(path, os.R_OK)]
tell([dict(os.environ), "sesame" in "".join(seen)])""",
        env={"GREETING": "hello"},
    )

    environment = told[0]
    assert environment.pop("PL_FD").isdigit()
    assert environment == {**BASE_ENV, "GREETING": "hello", "PL_APP": "/app", "PWD": "/app"}
    assert told[1] is False


async def test_only_the_socket_and_the_standard_descriptors_are_inherited(ask: Ask) -> None:
    """No descriptor of the agent reaches tenant code."""
    told = await ask(
        """os.chdir("/proc/self/fd")
tell([{fd: os.readlink(fd) for fd in os.listdir() if os.path.lexists(fd)}, agent.fileno()])"""
    )

    names, agent = told
    assert set(names) == {"0", "1", "2", str(agent)}
    assert names["0"] == "/dev/null"


async def test_the_host_sees_a_uid_of_the_containers_own(start: Start) -> None:
    """Every process, bubblewrap's included, and not the same one for two containers."""
    launcher = BubblewrapLauncher(uids=UidPool(first=300_000, count=2))
    first = await start("tell(1); agent.recv(1)", using=launcher)
    second = await start("tell(1); agent.recv(1)", using=launcher, name="second")
    await read_value(first)
    await read_value(second)

    uids = {sandbox.name: {_ids(pid) for pid in sandbox.pids()} for sandbox in (first, second)}

    assert uids == {
        "test": {(("Uid", 300_000), ("Gid", 300_000), ("Groups", None))},
        "second": {(("Uid", 300_001), ("Gid", 300_001), ("Groups", None))},
    }
    assert len(first.pids()) == 3
    await first.cleanup()
    await second.cleanup()
    launcher.close()


def _ids(pid: int) -> tuple[tuple[str, int | None], ...]:
    found = []
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, values = line.partition(":")
        if name in {"Uid", "Gid", "Groups"}:
            distinct = {int(value) for value in values.split()}
            assert len(distinct) <= 1
            found.append((name, distinct.pop() if distinct else None))
    return tuple(found)


def _uid(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


async def test_a_given_uid_is_used_and_a_lent_one_comes_back(spec: Any, start: Start) -> None:
    """A given uid is not taken from the pool."""
    pool = UidPool(first=300_000, count=1)
    launcher = BubblewrapLauncher(uids=pool)
    given = await start("tell(1); agent.recv(1)", using=launcher, uid=300_777)
    lent = await start("tell(1); agent.recv(1)", using=launcher, name="lent")
    await read_value(given)
    await read_value(lent)

    assert [_uid(sandbox.pid) for sandbox in (given, lent)] == [300_777, 300_000]
    assert pool.in_use() == {300_000}

    await lent.cleanup()

    assert pool.in_use() == frozenset()
    await given.cleanup()
    launcher.close()


async def test_no_capability_and_none_to_gain(ask: Ask) -> None:
    """As the kernel itself reports of the process."""
    status = await ask("tell(dict(line.split(':', 1) for line in open('/proc/self/status').read().splitlines()))")

    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert (status["NoNewPrivs"].strip(), status["Seccomp"].strip()) == ("1", "2")


async def test_dangerous_system_calls_are_refused(ask: Ask) -> None:
    """With the errors that libc expects."""
    x86 = platform.machine() == "x86_64"
    numbers = (
        {"unshare": 272, "ptrace": 101, "mount": 165, "bpf": 321}
        if x86
        else {"unshare": 97, "ptrace": 117, "mount": 40, "bpf": 280}
    )
    clone = 56 if x86 else 220

    told = await ask(
        f"""numbers = {numbers} | {{"io_uring_setup": 425, "clone3": 435}}
told = {{name: attempt(call, number, 0x10000000, 0, 0, 0, 0) for name, number in numbers.items()}}
told["clone(CLONE_NEWUSER)"] = attempt(call, {clone}, 0x10000000 | 17, 0, 0, 0, 0)
tell(told)"""
    )

    assert told.pop("clone3") == "ENOSYS"
    assert set(told.values()) == {"EPERM"}


async def test_no_socket_lingers(ask: Ask) -> None:
    """By whatever the C library asks; other options are set as ever."""
    told = await ask(
        """import socket
made, linger = socket.socket(), (1).to_bytes(4, "little") + (9).to_bytes(4, "little")
def option(level, name, value):
    try:
        made.setsockopt(level, name, value)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "set"
tell([option(1, 13, linger), option(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), option(6, socket.TCP_NODELAY, 1)])"""
    )
    assert told == ["EPERM", "set", "set"]


async def test_threads_and_children_still_work(ask: Ask) -> None:
    """The filter answers clone3 with ENOSYS, and libc falls back."""
    assert await ask(
        """import threading, subprocess
done = []
thread = threading.Thread(target=lambda: done.append(subprocess.check_output(["/bin/echo", "hi"], text=True)))
thread.start(); thread.join(); tell(done)"""
    ) == ["hi\n"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86_64 has a second table of system calls")
async def test_the_x32_calls_are_death(start: Start) -> None:
    """Their numbers mean something else than the filter's."""
    sandbox = await start("call(0x40000000 + 39)")

    assert await sandbox.wait() == SandboxExit(code=None, signal=signal.SIGSYS, reason="signal")


async def test_a_fork_bomb_stops_at_its_limit(start: Start) -> None:
    """The exit names the limit as its reason."""
    sandbox = await start(
        """import select
try:
    while True: os.fork()
except BlockingIOError:
    select.select([], [], [], None if os.getpid() > 2 else 0.05)
    raise"""
    )

    ended = await sandbox.wait()

    assert (ended.reason, ended.code) == ("pids", 1)


async def test_threads_count_as_processes(ask: Ask) -> None:
    """The first process counts too."""
    assert (
        await ask(
            """import threading
gate, made = threading.Event(), 0
try:
    while made < 200:
        threading.Thread(target=gate.wait, daemon=True).start()
        made += 1
except RuntimeError:
    pass
tell(made)"""
        )
        == limits().pids - 1
    )


async def test_a_memory_hog_is_killed_for_memory(start: Start) -> None:
    """The exit names the reason; the peak can be read even after the cleanup."""
    sandbox = await start(f"bytearray({128 * MIB})", limits=limits(memory_bytes=64 * MIB))

    assert await sandbox.wait() == SandboxExit(code=None, signal=signal.SIGKILL, reason="memory", oom=True)
    assert 60 * MIB < sandbox.memory_peak_bytes() <= 64 * MIB

    await sandbox.cleanup()

    assert sandbox.memory_peak_bytes() > 60 * MIB


async def test_its_processors_time_can_be_read(start: Start) -> None:
    """From its group, or from its processes where it has none."""
    sandbox = await start("while time.process_time() < 0.2: pass\ntell(1); agent.recv(1)")
    await read_value(sandbox)

    assert sandbox.cpu_times().used_ms >= 190
    assert sandbox.cpu_times().throttled_ms >= 0


async def test_the_memory_of_tmp_counts(start: Start) -> None:
    """/tmp lives in memory, and filling it must not get around the limit."""
    code = """with open("/tmp/x", "wb", buffering=0) as file:
    for _ in range(128): file.write(bytes(1 << 20))"""
    sandbox = await start(code, limits=limits(memory_bytes=64 * MIB, tmp_bytes=256 * MIB, file_bytes=256 * MIB))

    assert (await sandbox.wait()).reason == "memory"


async def test_the_processor_is_capped(ask: Ask) -> None:
    """A busy loop gets its share of the time."""
    used, wall = await ask(
        """begin = time.monotonic()
while time.monotonic() - begin < 0.6: pass
tell([time.process_time(), time.monotonic() - begin])""",
        limits=limits(cpu_millis=200),
    )

    # A period that is begun before the first throttling may be used whole.
    assert used < 0.2 * wall + 0.15


def oom_score_adj(pid: int) -> str:
    return Path(f"/proc/{pid}/oom_score_adj").read_text().strip()


async def test_it_is_the_first_to_go_when_the_host_runs_out_of_memory(start: Start) -> None:
    """All its processes, and they cannot put themselves behind the platform's."""
    sandbox = await start(
        """if os.fork() == 0: time.sleep(1000)
tell([attempt(os.open, "/proc/self/oom_score_adj", os.O_WRONLY), open("/proc/self/oom_score_adj").read()])
time.sleep(1000)"""
    )

    assert await read_value(sandbox) == ["EROFS", "1000\n"]
    pids = sandbox.pids()
    assert len(pids) >= 3
    assert {oom_score_adj(pid) for pid in pids} == {"1000"}


async def test_rlimits_hold(ask: Ask) -> None:
    """Core dumps, open files and the size of a file are bounded."""
    assert await ask(
        """import resource
tell([resource.getrlimit(which) for which in (resource.RLIMIT_CORE, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE)])"""
    ) == [[0, 0], [128, 128], [64 * MIB, 64 * MIB]]


async def test_a_file_linked_in_later_is_visible_and_not_writable(start: Start, code_dir: Path, tmp_path: Path) -> None:
    """As a blank gets its code: hard links from the content store, made on the host after the start."""
    stored = tmp_path / "stored"
    stored.write_text("ANSWER = 42\n")
    stored.chmod(0o644)
    sandbox = await start(
        """tell(os.listdir("/app"))
agent.recv(1)
sys.path.insert(0, "/app")
import later
path = "/app/later.py"
tell([later.ANSWER, attempt(open, path, "w"), attempt(os.unlink, path), attempt(os.chmod, path, 0o777)])"""
    )
    assert await read_value(sandbox) == []

    (code_dir / "later.py").hardlink_to(stored)
    sandbox.socket.send(b"!")

    assert await read_value(sandbox) == [42, "EROFS", "EROFS", "EROFS"]


async def test_devices_are_visible_only_if_given(ask: Ask) -> None:
    """Whatever devices the host has."""
    node = next(path for path in map(Path, ("/dev/fuse", "/dev/kvm", "/dev/hwrng", "/dev/kmsg")) if path.exists())

    assert await ask(f"tell(os.path.exists('{node}'))") is False
    assert await ask(f"tell(os.path.exists('{node}'))", name="given", device_nodes=(node,)) is True


async def test_with_a_device_threads_can_be_named_and_nothing_else_of_the_kernel_written(ask: Ask) -> None:
    """As NVIDIA's driver does, which fails otherwise; also where the container's host uid is the agent's, root's."""
    code = """import threading
def thread():
    path = f"/proc/self/task/{threading.get_native_id()}/comm"
    named.append([attempt(lambda: open(path, "w").write("cuda")), open(path).read()])
named = []
worker = threading.Thread(target=thread); worker.start(); worker.join()
settings = ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity", "/proc/mtrr"]
tell([named, [attempt(os.open, path, os.O_WRONLY) for path in settings if os.path.exists(path)]])"""
    dropped = BubblewrapLauncher()
    kept = BubblewrapLauncher(drop_uid=False)
    for number, launcher in enumerate((dropped, kept)):
        named, settings = await ask(code, name=f"named-{number}", device_nodes=(Path("/dev/null"),), using=launcher)
        assert named == [["done", "cuda\n"]]
        assert settings
        assert set(settings) <= {"EROFS", "EACCES"}
        launcher.close()


async def test_kill_ends_what_has_run_away(start: Start) -> None:
    """A process that double-forked into a session of its own, and ignores every signal that it can."""
    sandbox = await start(
        """import signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (1, 2, 3, 13, 15): signal.signal(number, signal.SIG_IGN)
        tell(os.getpid())
        while True: signal.pause()
    os._exit(0)
os.wait()
signal.pause()"""
    )
    assert await read_value(sandbox) > 2
    ended = all_end(sandbox.pids())

    sandbox.kill()
    sandbox.kill()

    assert ended()
    assert (await sandbox.wait()).reason == "killed"
    assert sandbox.pids() == ()
    sandbox.kill()


async def test_kill_ends_what_is_in_the_cgroup_but_not_in_the_pid_namespace(start: Start) -> None:
    """As bubblewrap's own child is for a moment of each start, before it asks to die with its parent."""
    sandbox = await start("tell(1); agent.recv(1)")
    await read_value(sandbox)
    with sleeper() as stray:
        for entrance in sandbox._group.folders:  # type: ignore[attr-defined]
            (entrance / "cgroup.procs").write_text(str(stray.pid))
        assert stray.pid in sandbox.pids()

        sandbox.kill()

        assert stray.wait(20) == -signal.SIGKILL


async def test_when_the_first_process_ends_the_rest_ends(start: Start) -> None:
    """Also a child in a session of its own."""
    sandbox = await start(
        """if os.fork() == 0:
    os.setsid()
    tell(1)
    time.sleep(1000)
agent.recv(1)"""
    )
    await read_value(sandbox)
    ended = all_end(sandbox.pids())

    sandbox.socket.send(b"!")

    assert await sandbox.wait() == SandboxExit(code=0, signal=None, reason="exited")
    assert ended()


async def test_the_cgroup_is_gone_after_cleanup_and_the_name_free_again(start: Start, launcher: Any) -> None:
    """Until then a second sandbox of that name is refused."""
    sandbox = await start("tell(1); agent.recv(1)")
    folders = sandbox._group.folders  # type: ignore[attr-defined]
    with pytest.raises(SandboxNotStarted, match="no cgroup for sandbox test"):
        await start("pass")
    assert all(folder.is_dir() for folder in folders)

    await sandbox.cleanup()
    await sandbox.cleanup()

    assert not any(folder.exists() for folder in folders)
    assert await (await start("sys.exit(3)")).wait() == SandboxExit(code=3, signal=None, reason="exited")


async def test_torch_works_inside(ask: Ask) -> None:
    """The filter and the read-only root leave it everything that it needs."""
    told = await ask(
        "import torch; tell([float((torch.ones(64, 64) @ torch.ones(64, 64)).sum())])",
        options=("-I",),
        limits=limits(memory_bytes=2048 * MIB, pids=256),
    )

    assert told == [64.0**3]


async def test_output_comes_through_pipes(start: Start) -> None:
    """Standard output and standard error apart."""
    sandbox = await start("print('out'); print('err', file=sys.stderr)")

    await sandbox.wait()

    assert (read_output(sandbox.stdout_fd), read_output(sandbox.stderr_fd)) == ("out\n", "err\n")


async def test_an_interpreter_that_is_not_there_is_a_failed_setup(start: Start) -> None:
    """Standard error names it."""
    sandbox = await start("pass", python=Path("/nowhere/python"))

    assert (await sandbox.wait()).reason == "setup"
    assert "No such file" in read_output(sandbox.stderr_fd)


async def test_a_source_that_is_not_there_is_refused_at_once(start: Start, spec: Any) -> None:
    """The name is free for the next start."""
    lost = Mount(source=Path("/nowhere"), target=Path("/nowhere"))

    with pytest.raises(SandboxNotStarted, match="cannot show /nowhere"):
        await start("pass", read_only=(*spec.read_only, lost))

    assert await (await start("pass")).wait() == SandboxExit(code=0, signal=None, reason="exited")


async def test_a_code_folder_closed_to_the_container_is_refused(start: Start, code_dir: Path) -> None:
    """The error names the command that mends it."""
    os.chmod(code_dir, 0o700)  # noqa: PTH101 - pathlib's would be taken for waiting on a disk

    with pytest.raises(SandboxNotStarted, match=r"chmod o\+rX"):
        await start("pass")


async def test_without_a_uid_drop_the_rest_holds_and_the_guarantee_says_so(start: Start) -> None:
    """A uid that was asked for is refused then."""
    launcher = BubblewrapLauncher(drop_uid=False)
    sandbox = await start("tell(os.getuid()); agent.recv(1)", using=launcher)

    assert await read_value(sandbox) == 65534
    assert _uid(sandbox.pid) == os.geteuid()
    with pytest.raises(SandboxNotStarted, match="only a root agent can give sandbox test the host uid 300000"):
        await start("pass", using=launcher, uid=300_000)
    assert not launcher.guarantees().own_host_uid
    assert "own host uid" in launcher.guarantees().notes[0]
    await sandbox.cleanup()
    launcher.close()


async def test_without_cgroups_rlimits_take_over_and_the_guarantee_says_so(start: Start) -> None:
    """Memory and processes are bounded, processors are not; kill still ends all."""
    launcher = BubblewrapLauncher()
    launcher._cgroups = Cgroups({}, "nobody")
    small = limits(memory_bytes=128 * MIB, pids=8)

    hog = await start(f"bytearray({256 * MIB})", using=launcher, name="hog", limits=small)
    assert await hog.wait() == SandboxExit(code=1, signal=None, reason="exited")
    assert "MemoryError" in read_output(hog.stderr_fd)

    bomb = await start("for _ in range(20): os.fork() or (time.sleep(1000))", using=launcher, name="bomb", limits=small)
    assert await bomb.wait() == SandboxExit(code=1, signal=None, reason="exited")
    assert "BlockingIOError" in read_output(bomb.stderr_fd)

    runaway = await start("tell(os.fork()); time.sleep(1000)", using=launcher, name="runaway")
    await read_value(runaway)
    ended = all_end(runaway.pids())
    runaway.kill()
    assert ended()

    guarantees = launcher.guarantees()
    assert (guarantees.memory, guarantees.pids, guarantees.cpu) == ("rlimit", "rlimit", "none")
    assert len(guarantees.notes) == 4
    assert guarantees.sandbox_limits
    launcher._uids = None  # all containers have one user, whose processes no rlimit tells apart
    assert not launcher.guarantees().sandbox_limits
    for sandbox in (hog, bomb, runaway):
        await sandbox.cleanup()


def test_a_full_node_guarantees_everything(launcher: BubblewrapLauncher) -> None:
    """No note explains a gap."""
    guarantees = launcher.guarantees()

    assert guarantees.own_host_uid
    assert guarantees.many_tenants
    assert guarantees.sandbox_limits
    assert (guarantees.memory, guarantees.pids, guarantees.cpu, guarantees.notes) == ("cgroup", "cgroup", "cgroup", ())


def test_a_missing_bubblewrap_names_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Before any sandbox is started."""
    monkeypatch.setitem(ENV, "PATH", str(tmp_path))

    with pytest.raises(SandboxUnavailable, match="bwrap is not installed on this node: apt-get install -y bubblewrap"):
        BubblewrapLauncher()
    with pytest.raises(SandboxUnavailable):
        find_program("sh", package="dash")


@pytest.mark.parametrize(
    ("returncode", "events", "status", "killed", "expected"),
    [
        (0, CgroupEvents(), b'{"exit-code": 0}', False, SandboxExit(code=0, signal=None, reason="exited")),
        (1, CgroupEvents(), b'{"exit-code": 1}', False, SandboxExit(code=1, signal=None, reason="exited")),
        (1, CgroupEvents(pids_refused=2), b'{"exit-code": 1}', False, SandboxExit(code=1, signal=None, reason="pids")),
        (
            0,
            CgroupEvents(pids_refused=2),
            b'{"exit-code": 0}',
            False,
            SandboxExit(code=0, signal=None, reason="exited"),
        ),
        (139, CgroupEvents(), b'{"exit-code": 139}', False, SandboxExit(code=None, signal=11, reason="signal")),
        (
            137,
            CgroupEvents(oom_kills=1),
            b'{"exit-code": 137}',
            False,
            SandboxExit(code=None, signal=9, reason="memory", oom=True),
        ),
        (-9, CgroupEvents(oom_kills=3), b"", False, SandboxExit(code=None, signal=9, reason="memory", oom=True)),
        (
            0,
            CgroupEvents(oom_kills=1),
            b'{"exit-code": 0}',
            False,
            SandboxExit(code=0, signal=None, reason="exited", oom=True),
        ),
        (1, CgroupEvents(), b'{"child-pid": 7}', False, SandboxExit(code=1, signal=None, reason="setup")),
        (97, CgroupEvents(), b"", False, SandboxExit(code=97, signal=None, reason="setup")),
        (-9, CgroupEvents(), b"", True, SandboxExit(code=None, signal=9, reason="killed")),
        (-9, CgroupEvents(), b"", False, SandboxExit(code=None, signal=9, reason="signal")),
        (255, CgroupEvents(), b'{"exit-code": 255}', False, SandboxExit(code=255, signal=None, reason="exited")),
    ],
)
def test_judge(returncode: int, events: CgroupEvents, status: bytes, killed: bool, expected: SandboxExit) -> None:
    """The exit code, what the cgroup has refused, and bwrap's own report decide together."""
    assert judge(returncode, events=events, status=status, killed=killed) == expected


async def test_a_start_that_runs_out_of_descriptors_leaves_nothing(launcher: BubblewrapLauncher, spec: Any) -> None:
    """At every number of descriptors that is too few: nothing is left open, no group, no uid, no process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    first = await launcher.start(spec)
    await first.wait()
    await first.cleanup()
    before = _open_descriptors()
    failures = 0
    try:
        for room in range(1, 30):
            resource.setrlimit(resource.RLIMIT_NOFILE, (len(before) + room, hard))
            try:
                sandbox = await launcher.start(spec)
            except SandboxNotStarted:
                failures += 1
            else:
                await sandbox.cleanup()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert 5 < failures < 29
    assert _open_descriptors() == before
    assert launcher._uids
    assert launcher._uids.in_use() == frozenset()
    assert not [path for top in launcher._cgroups._tops for path in (top / launcher._cgroups._agent).glob("*/")]


def _open_descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208
