"""nats-py is as `client` takes it to be; where a release fails this, read what it changed before noting it here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from nats.aio.transport import TcpTransport
from nats.protocol.parser import AUTHORIZATION_VIOLATION, PERMISSIONS_ERR, Parser

from pilotlight_core.bus import nats_library
from pilotlight_core.bus.client import NatsClient
from tests.internals import REPOSITORY, changed, importers, missing

USED: dict[type, set[str]] = {
    Client: {
        "_connect_to_server", "_current_server", "_flush_queue", "_max_payload", "_pending", "_pending_data_size",
        "_process_err", "_process_info", "_process_msg", "_process_op_err", "_public_nkey", "_read_loop", "_sid",
        "_subs", "_transport", "is_closed", "is_connected", "stats",
    },
    TcpTransport: {"_io_writer"},
}  # fmt: skip
SIGNATURES: dict[Callable[..., Any], list[str]] = {
    Client._connect_to_server: ["self", "s"],
    Client._process_err: ["self", "err_msg"],
    Client._process_info: ["self", "info", "initial_connection"],
    Client._process_msg: ["self", "sid", "subject", "reply", "data", "headers"],
    Client._process_op_err: ["self", "e"],
    Client._read_loop: ["self"],
}
WRITTEN_AGAINST: dict[Callable[..., Any], str] = {
    Client._flusher: "57466e38aeb8",
    Client._process_err: "de28a209ca74",
    Client._process_msg: "48a216307c69",
    Client.subscribe: "6acd6ba7a854",
    Parser.parse: "f7e0531def46",
}
"""What `client` does in their place, or counts on step by step, as it is written (`tests.internals.digest`)."""


def test_nats_py_has_the_internals_that_the_client_stands_on() -> None:
    """Each name exists with the same parameters, and the overridden methods are unchanged."""
    assert missing(USED) == {}
    assert {method: list(inspect.signature(method).parameters) for method in SIGNATURES} == SIGNATURES
    assert (AUTHORIZATION_VIOLATION, PERMISSIONS_ERR) == ("authorization violation", "permissions violation")
    assert changed(WRITTEN_AGAINST) == {}


def test_no_other_module_touches_nats_py() -> None:
    """What an upgrade can break is in one file; it imports nats-py by way of another."""
    assert importers("nats") == {str(Path(inspect.getfile(nats_library)).relative_to(REPOSITORY))}
    assert importers(nats_library.__name__) == {str(Path(inspect.getfile(NatsClient)).relative_to(REPOSITORY))}
