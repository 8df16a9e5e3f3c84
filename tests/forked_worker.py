"""`python forked_worker.py SOCKET`: a worker of xdist, as a fork of `tests.worker_forks`."""

from __future__ import annotations

import socket
import sys

if __name__ == "__main__":
    with socket.socket(socket.AF_UNIX) as worker:
        worker.connect(sys.argv[1])
        socket.send_fds(worker, [b"w"], (0, 1, 2))
        worker.recv(1)  # its end
