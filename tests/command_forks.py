"""`python -P tests/command_forks.py SOCKET`: the command line and the SDK, loaded once: a fork runs each command.

Or each program of a user, as `python -c` does.

It ends with its standard input, which is that of whoever started it.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import json
import os
import select
import signal
import socket
import sys
import threading
import traceback
from importlib import import_module
from types import ModuleType

from pilotlight.cli.main import COMMANDS, main, module_of

LOADED = (*map(module_of, COMMANDS), "pilotlight.client.client", "pilotlight.packing", "httpx_aiohttp")


def warm_up() -> None:
    """Load what commands load at their first use: what reads options, and what runs requests."""
    import_module("anyio._backends._asyncio")
    sys.argv[:] = ["pilotlight", "version"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main()


def serve(at: str) -> None:
    """Fork for each connection."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the forks are nobody's to wait for
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(at)
        listener.listen(64)
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    run(connection)


def run(connection: socket.socket) -> None:
    """Be the command: take over what a process has of its own, run, and answer with the exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, files, _, _ = socket.recv_fds(connection, 4, 3)
    request = json.loads(connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    code = 1
    try:
        if request["program"] is None:
            sys.argv[:] = ["pilotlight", *request["words"]]
            main()
        else:
            run_program(request["program"])
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        connection.sendall(bytes([code]))
        os._exit(code)


def run_program(text: str) -> None:
    """Be `python -c text`, to the end of its threads."""
    sys.argv[:], sys.path[:0] = ["-c"], [""]
    sys.modules["__main__"] = program = ModuleType("__main__")
    try:
        exec(compile(text, "<string>", "exec"), vars(program))  # noqa: S102 - it is a test's own
    except Exception:  # noqa: BLE001 - as an interpreter tells of it
        traceback.print_exc()
        sys.exit(1)
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()


def _end_with(connection: socket.socket) -> None:
    if not connection.recv(1):
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type] # as `main` does, before httpx is loaded
    for name in LOADED:
        import_module(name)
    place = sys.argv[1]
    warm_up()
    gc.freeze()
    serve(place)
