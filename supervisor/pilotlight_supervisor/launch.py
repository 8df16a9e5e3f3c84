"""Run a command that ends with its parent: `python -I -S launch.py PARENT_PID COMMAND [ARGUMENT…]`.

The kernel kills the command when its parent ends for any reason; this setting survives the exec, so no process stays
between. It is started as a file, which is fast, because every process of the platform starts through it.
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
    # The parent may have ended before the setting.
    if os.getppid() != parent:
        sys.exit(f"{command[0]}: the process that started it is gone")
    try:
        os.execv(command[0], command)  # noqa: S606
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
