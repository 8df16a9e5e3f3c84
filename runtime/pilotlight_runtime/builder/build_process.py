"""The process in the sandbox of a builder: it takes one job, has uv do it, sends what came of it, and ends."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from pilotlight_runtime.builder.base_stubs import constraints_of, installed_packages, write_stubs
from pilotlight_runtime.builder.build_frames import (
    MAX_WORDS,
    PIECE_BYTES,
    BuildEnd,
    BuildJob,
    BuiltPiece,
    next_job,
    send_frame,
)
from pilotlight_runtime.builder.uv_commands import install_command, is_unanswered, lock_command, uv_environment
from pilotlight_runtime.guest.basics.proxy_forwarder import VARIABLES, proxy_variables

SOCKET = "PL_FD"
FOLDER = Path("/tmp/build")  # noqa: S108 - inside, /tmp is the sandbox's own
LEFT_BEHIND = (".lock",)
"""What uv writes beside the packages."""


class BuildRefused(Exception):
    """It cannot be done; the message is for the tenant. `is_unanswered`: since the index does not answer."""

    def __init__(self, words: str, *, is_unanswered: bool = False) -> None:
        super().__init__(words)
        self.is_unanswered = is_unanswered


def main() -> None:
    """Do the job that comes over the inherited socket."""
    with socket.socket(fileno=int(os.environ.pop(SOCKET))) as agent:
        try:
            end = _done(next_job(agent), agent)
        except BuildRefused as refused:
            end = BuildEnd(error=str(refused)[-MAX_WORDS:], is_unanswered=refused.is_unanswered)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            end = BuildEnd(error=f"{type(error).__name__}: {error}"[-MAX_WORDS:])
        send_frame(agent, end)
    os._exit(0)  # the forwarder's thread serves on


def _done(job: BuildJob, agent: socket.socket) -> BuildEnd:
    FOLDER.mkdir()
    proxy = proxy_variables(job.network, {})[VARIABLES[0]]
    env = uv_environment(job, FOLDER, proxy)
    if job.lock:
        (FOLDER / "lock.txt").write_text(job.lock)
        target = FOLDER / "packages"
        _run(install_command(job, FOLDER, target), env)
        for piece in pieces_of(target):
            send_frame(agent, piece)
        return BuildEnd()
    base = installed_packages(job.python)
    write_stubs(base, FOLDER / "stubs")
    (FOLDER / "base.txt").write_text(constraints_of(base))
    (FOLDER / "pins.txt").write_text(job.pins)
    (FOLDER / "requirements.in").write_text("".join(f"{each}\n" for each in job.requirements))
    return BuildEnd(lock=_run(lock_command(job, FOLDER), env), bases=tuple(each.name for each in base))


def _run(command: list[str], env: Mapping[str, str]) -> str:
    """What uv prints. Raises BuildRefused with what it says."""
    done = subprocess.run(
        command, capture_output=True, env=dict(env), cwd=FOLDER, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip()
        raise BuildRefused(
            words or f"uv ended with {done.returncode}", is_unanswered=is_unanswered(done.returncode, words)
        )
    return done.stdout.decode()


def pieces_of(target: Path) -> Iterator[BuiltPiece]:
    """Yield all files below a folder, by path.

    Raises:
        BuildRefused: it has something that is neither file nor folder.
    """
    folders = [target]
    while folders:
        folder = folders.pop()
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda each: each.name)
        for each in found:
            path = Path(each.path)
            name = str(path.relative_to(target))
            if name in LEFT_BEHIND:
                continue
            mode = each.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                folders.append(path)
            elif stat.S_ISREG(mode):
                yield from _pieces(path, name, is_program=bool(mode & stat.S_IXUSR))
            else:
                raise BuildRefused(f"{name!r} of a package is neither a file nor a folder")


def _pieces(path: Path, name: str, *, is_program: bool) -> Iterator[BuiltPiece]:
    with path.open("rb") as file:
        data = file.read(PIECE_BYTES)
        while True:
            following = file.read(PIECE_BYTES) if len(data) == PIECE_BYTES else b""
            yield BuiltPiece(path=name, data=data, is_last=not following, is_program=is_program)
            if not following:
                return
            data = following
