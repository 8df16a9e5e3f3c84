"""Run a command that ends with its parent: `python -I -S launch.py PARENT_PID COMMAND [ARGUMENT…]`.

The kernel kills the command when the process that started it dies, however that dies. The request survives the exec,
so nothing stays between. It must be started as a file: it is on the way of every process that the platform starts.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"{command[0]}: the kernel does not offer PR_SET_PDEATHSIG")
    # It may have died before the kernel knew.
    if os.getppid() != parent:
        sys.exit(f"{command[0]}: whoever started it is gone")
    try:
        os.execv(command[0], command)  # noqa: S606
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
