"""`python -P tests/module_forks.py SOCKET`: the platform's processes, loaded once, of which a fork is each that starts.

A fork has what a process of its own has: arguments, environment, folder, files, signals, session, parent, exit code.
What it has not are a command line and an environment of its own in /proc. `up` starts its parts in the same way; what
is not one of `MODULES`, such as nats-server or a sandbox, is executed. It ends with its standard input.
"""

from __future__ import annotations

import pilotlight_core.lean_libraries  # isort: skip # noqa: F401 - before what would import it whole

import asyncio
import atexit
import contextvars
import ctypes
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from pilotlight_supervisor import launch

MODULES = {
    "pilotlight_supervisor.up": "pilotlight_supervisor.up",
    "pilotlight_gateway": "pilotlight_gateway.__main__",
    "pilotlight_gateway.duties": "pilotlight_gateway.duties.__main__",
    "pilotlight_gateway.dashboard": "pilotlight_gateway.dashboard.__main__",
    "pilotlight_autoscaler": "pilotlight_autoscaler.__main__",
    "pilotlight_runtime": "pilotlight_runtime.__main__",
}
"""What `python -m` is told -> the module that it runs."""
CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
FIRST_OTHER = 3
"""The first descriptor that is not standard input, output or error."""

_libc = ctypes.CDLL(None, use_errno=True)
_execute: Callable[..., int] = subprocess._fork_exec  # type: ignore[attr-defined]


def load() -> None:
    """Load what the modules import; they themselves run in each fork."""
    for module in MODULES.values():
        import_module(module)
    for module in MODULES.values():
        del sys.modules[module]
    import_module("asyncio.unix_events")


def serve(at: str) -> None:
    """Fork for each connection, tell it the pid, and when it has ended the code."""
    children: dict[int, socket.socket] = {}
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(at)
        listener.listen(64)
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([listener, sys.stdin, woken], [], [])
            if sys.stdin in ready:
                return
            if woken in ready:
                os.read(woken, 64)
                tell_ends(children)
            if listener in ready:
                connection, _ = listener.accept()
                children[fork(connection)] = connection


def tell_ends(children: dict[int, socket.socket]) -> None:
    """Bury children that have ended, and tell who started them."""
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with children.pop(pid) as connection:
            try:
                connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
            except OSError:
                continue  # nobody asks any more


def fork(connection: socket.socket) -> int:
    """Start what a connection asks for."""
    size, files, _, _ = socket.recv_fds(connection, 4, 1)
    request = json.loads(connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
    (log,) = files
    ours, pid = os.getpid(), os.fork()
    if pid == 0:
        if request["network"]:
            die_with(ours)
            enter(request["network"], request["names"])
        take(os.open(os.devnull, os.O_RDONLY), log, log)
        become(request["words"], request["env"], request["cwd"])
    os.close(log)
    connection.sendall(pid.to_bytes(4, "big"))
    return pid


def die_with(parent: int) -> None:
    """Be killed when it dies."""
    _libc.prctl(launch.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def enter(network: str, names: str) -> None:
    """Be on a host of `tests.hosts`: in this namespace, and with this file as /etc/hosts if there is one."""
    with Path(network).open() as namespace:
        _called(_libc.setns(namespace.fileno(), CLONE_NEWNET))
    if names:
        _called(_libc.unshare(CLONE_NEWNS))
        _called(_libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
        _called(_libc.mount(names.encode(), b"/etc/hosts", None, MS_BIND, None))


def _called(failed: int) -> None:
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def take(*files: int) -> None:
    """Have these files as standard ones, and no others."""
    spare = [os.dup(file) for file in files]
    for number, file in enumerate(spare):
        os.dup2(file, number)
    os.closerange(FIRST_OTHER, os.sysconf("SC_OPEN_MAX"))


def become(words: Sequence[str], env: dict[str, str], cwd: str | None) -> NoReturn:
    """Be `python -m words`, to the end."""
    gc.freeze()  # what the other process had stays, or its files would be closed here, whatever has their numbers now
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if signal.getsignal(number) not in (signal.SIG_DFL, signal.SIG_IGN, None):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if sys.version_info < (3, 12):  # later ones forget by themselves who watches the other's children
        asyncio.set_event_loop_policy(None)
    os.environ.clear()
    os.environ.update(env)
    if cwd is not None:
        os.chdir(cwd)
    sys.argv[:] = ["-m", *words[1:]]
    code = contextvars.Context().run(_run, words[0])
    for end in (threading._shutdown, atexit._run_exitfuncs, sys.stdout.flush, sys.stderr.flush):  # type: ignore[attr-defined]
        try:
            end()
        except Exception:  # noqa: BLE001 - an interpreter that ends goes on, too
            traceback.print_exc()
    os._exit(code)


def _run(module: str) -> int:
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - it is what ends a process
        traceback.print_exc()
        return 1
    return 0


def fork_or_execute(args: Sequence[Any], executables: Sequence[bytes], *rest: Any) -> int:
    """What `subprocess` does to start a process: a fork for one of the modules, started as `up` does."""
    words = [os.fsdecode(word) for word in args]
    before = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), sys.executable, "-m"]
    if words[: len(before)] != before or words[len(before)] not in MODULES:
        return _execute(args, executables, *rest)
    _, _, cwd, env, given, _, _, out, _, err = rest[:10]
    new_session = rest[13]
    assert new_session, "`up` starts a part in a session of its own"
    assert -1 not in (given, out, err), "`up` gives a part its standard files"
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        take(given, out, err)
        die_with(parent)  # as `launch` does
        become(words[len(before) :], dict(os.fsdecode(pair).split("=", 1) for pair in env), cwd)
    return pid


if __name__ == "__main__":
    place = sys.argv[1]
    load()
    subprocess._fork_exec = fork_or_execute  # type: ignore[attr-defined]
    assert threading.active_count() == 1, "a fork has one thread"
    gc.freeze()
    serve(place)
