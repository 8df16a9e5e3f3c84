"""uvicorn is as `server` takes it to be; where a release fails this, read what it changed before noting it here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from uvicorn import Server
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from pilotlight_gateway.http.quiet_server import QuietServer
from pilotlight_gateway.http.server import BoundedProtocol
from tests.internals import REPOSITORY, changed, importers, missing

USED: dict[type, set[str]] = {
    HttpToolsProtocol: {
        "_get_upgrade", "_should_upgrade", "_start_asgi_task", "_unset_keepalive_if_required", "client", "connections",
        "cycle", "expect_100_continue", "flow", "handle_websocket_upgrade", "headers", "loop", "pipeline", "scope",
        "server_state", "timeout_keep_alive", "timeout_keep_alive_handler", "timeout_keep_alive_task", "transport",
    },
    RequestResponseCycle: {
        "body", "chunked_encoding", "default_headers", "disconnected", "flow", "keep_alive", "message_event",
        "more_body", "on_response", "response_complete", "response_started", "scope", "transport",
        "waiting_for_100_continue",
    },
    FlowControl: {"resume_reading", "write_paused"},
    ServerState: {"total_requests"},
    Server: {"capture_signals", "main_loop", "on_tick", "should_exit", "started"},
}  # fmt: skip
SIGNATURES: dict[Callable[..., Any], list[str]] = {
    HttpToolsProtocol._start_asgi_task: ["self", "cycle", "app"],
    HttpToolsProtocol._unset_keepalive_if_required: ["self"],
    HttpToolsProtocol.connection_made: ["self", "transport"],
    HttpToolsProtocol.connection_lost: ["self", "exc"],
    HttpToolsProtocol.data_received: ["self", "data"],
    HttpToolsProtocol.on_body: ["self", "body"],
    HttpToolsProtocol.on_header: ["self", "name", "value"],
    HttpToolsProtocol.on_headers_complete: ["self"],
    HttpToolsProtocol.on_message_begin: ["self"],
    HttpToolsProtocol.on_message_complete: ["self"],
    HttpToolsProtocol.on_response_complete: ["self"],
    HttpToolsProtocol.timeout_keep_alive_handler: ["self"],
}
WRITTEN_AGAINST: dict[Callable[..., Any], str] = {
    HttpToolsProtocol._unset_keepalive_if_required: "9daed956b86c",
    HttpToolsProtocol.data_received: "b4f9892d120d",
    HttpToolsProtocol.on_header: "ad40beaab858",
    HttpToolsProtocol.on_headers_complete: "09d867a0c132",
    HttpToolsProtocol.on_response_complete: "f6ae4a31a9a6",
    HttpToolsProtocol.timeout_keep_alive_handler: "2a83d68a0d0c",
    RequestResponseCycle.receive: "7e707359ab74",
    RequestResponseCycle.send: "a5e03b3eaa3d",
    Server.main_loop: "cf516f50eedb",
    Server.on_tick: "a4d3e9782edd",
}
"""What `server` does in their place, or counts on step by step, as it is written (`tests.internals.digest`)."""


def test_uvicorn_has_the_internals_that_the_server_stands_on() -> None:
    """Each name is there, each method takes the same, and what is done anew or counted on is as it was."""
    assert missing(USED) == {}
    assert {method: list(inspect.signature(method).parameters) for method in SIGNATURES} == SIGNATURES
    assert all(
        method.__name__ in vars(BoundedProtocol) for method in SIGNATURES if method.__name__ != "_start_asgi_task"
    )
    assert STATUS_LINE[200] == b"HTTP/1.1 200 OK\r\n"
    assert changed(WRITTEN_AGAINST) == {}


def test_no_other_module_touches_uvicorn() -> None:
    """What an upgrade can break is in two files."""
    ours = (BoundedProtocol, QuietServer)
    assert importers("uvicorn") == {str(Path(inspect.getfile(one)).relative_to(REPOSITORY)) for one in ours}
