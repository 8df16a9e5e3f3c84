"""The fitness check: whether a GPU works, tested before its node offers it.

The check fills memory, copies it within the device and reads it back, with patterns that set and clear each bit; it is
no burn-in. It runs in its own process (`python -m pilotlight_runtime.devices.nvidia.gpu_fitness LIBCUDA`), which sees
one device: a defective GPU may hang or kill its user.

Exit codes: 0 fit; 1 not fit, with the reason on stderr; anything else: not tried, because another process uses all of
it or the check itself failed. Then the GPU is trusted.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence

import structlog

from pilotlight_runtime.devices.nvidia.cuda_port import WORD, Cuda, CudaError, LibCuda
from pilotlight_runtime.devices.nvidia.driver_libraries import Libraries

log = structlog.get_logger(__name__)

SIZE = 64 * 2**20
"""Of each of two buffers: they must fit the smallest MIG instance beside a context."""
PATTERNS = (0x55555555, 0xAAAAAAAA, 0xFFFFFFFF, 0x00000000)
OUT_OF_MEMORY, DEVICE_UNAVAILABLE = 2, 46
IN_USE = (OUT_OF_MEMORY, DEVICE_UNAVAILABLE)
"""Another process has all of its memory, or exclusive use: that is no fault."""
FIT, UNFIT, UNTRIED = 0, 1, 3
WITHIN_S = 60.0
"""The first context on an idle GPU takes some seconds, on eight at once some more."""
KILLED_S = 2.0
WORDS = 400


class NotTried(Exception):
    """Why the check could not be made."""


def trouble(cuda: Cuda, size: int = SIZE) -> str:
    """Why a device must not be used; "" if it may. Blocks.

    Raises:
        NotTried: if another process uses all of it.
    """
    try:
        cuda.open()
        first, second = cuda.allocate(size), cuda.allocate(size)
        for pattern in PATTERNS:
            cuda.fill(first, pattern, size)
            cuda.copy(second, first, size)
            if wrong := differing(cuda.read(second, size), pattern):
                return f"{wrong} of {size} bytes of its memory came back otherwise than they were written"
        cuda.free(first)
        cuda.free(second)
        cuda.close()
    except CudaError as error:
        if error.code in IN_USE:
            raise NotTried(str(error)) from error
        return str(error)
    return ""


def differing(data: bytes, word: int) -> int:
    expected = word.to_bytes(WORD, "little") * (len(data) // WORD)
    return 0 if data == expected else sum(one != other for one, other in zip(data, expected, strict=True))


PROGRAM = (sys.executable, "-m", "pilotlight_runtime.devices.nvidia.gpu_fitness")


async def fitness(
    visible: str, libraries: Libraries, *, within_s: float = WITHIN_S, program: Sequence[str] = PROGRAM
) -> str:
    """Why a device (a UUID of a GPU or of a MIG instance) must not be used; "" if it may, or could not be tried."""
    env = {**os.environ, **libraries.env, "CUDA_VISIBLE_DEVICES": visible}
    try:
        child = await asyncio.create_subprocess_exec(
            *program,
            str(libraries.libcuda),
            env=env,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        return verdict(UNTRIED, str(error), visible)
    try:
        async with asyncio.timeout(within_s):
            _, output = await child.communicate()
    except TimeoutError:
        await _abandon(child)
        return f"the check did not end within {within_s:g} s"
    return verdict(child.returncode or 0, output.decode(errors="replace").strip()[-WORDS:], visible)


def verdict(code: int, output: str, visible: str) -> str:
    """The reason in how the check has ended; a signal (negative codes) counts as the device's fault, too."""
    if code == UNFIT:
        return output
    if code < 0:
        return f"a process that uses it ends with {signal.Signals(-code).name}"
    if code != FIT:
        log.warning("a GPU could not be tried", gpu=visible, why=output)
    return ""


async def _abandon(child: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.kill()
    # A process that hangs in the driver cannot be killed, so the wait for its end is short.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(KILLED_S):
            await child.communicate()


def main() -> int:
    """Test the one visible device; see the exit codes above."""
    try:
        why = trouble(LibCuda(sys.argv[1]))
    except (NotTried, OSError, AttributeError, MemoryError) as error:
        print(error, file=sys.stderr)  # noqa: T201 - it is what the program is for
        return UNTRIED
    if why:
        print(why, file=sys.stderr)  # noqa: T201 - the same
    return UNFIT if why else FIT


if __name__ == "__main__":
    sys.exit(main())
