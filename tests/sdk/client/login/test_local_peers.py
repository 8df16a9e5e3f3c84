"""Whose connection of loopback it is."""

from __future__ import annotations

import os
import socket

import pytest

from pilotlight.client.login import local_peers
from pilotlight.client.login.local_peers import is_own, peer_user

TEXT = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2116 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100007F:C001 0100007F:2116 01 00000000:00000000 00:00000000 00000000  1001        0 2 1 0 20 4 30 10 -1
   2: 0100007F:2116 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1000        0 3 1 0 20 4 30 10 -1
   3: cut
"""


def test_the_other_end_is_who_counts() -> None:
    """Not the listener, and not the end that it has accepted."""
    assert peer_user(0xC001, 0x2116, TEXT) == 1001
    assert peer_user(0xC002, 0x2116, TEXT) is None
    assert peer_user(1, 2, "") is None


def test_a_connection_of_this_process_is_its_own() -> None:
    """By what the kernel says of it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as made:
            own = made.getsockname()[1]
            assert peer_user(own, port, local_peers.SOCKETS.read_text()) == os.geteuid()
            assert is_own(own, port)


def test_where_nobody_knows_all_are_served(monkeypatch: pytest.MonkeyPatch, tmp_path: os.PathLike[str]) -> None:
    """Another system than Linux, or a browser of another machine's, behind something that forwards."""
    assert is_own(1, 2)
    monkeypatch.setattr(local_peers, "SOCKETS", type(local_peers.SOCKETS)(tmp_path) / "none")
    assert is_own(1, 2)
