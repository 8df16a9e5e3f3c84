"""`pilotlight node join`, against gateways that answer as scripted. A real one: `tests/hosts/test_joined_nodes.py`."""

from __future__ import annotations

import io
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import msgspec
import pytest

from pilotlight_core.bus.nkeys import NkeyKind, is_public_key
from pilotlight_core.host.config import AgentSettings
from pilotlight_core.model.api.join_text import JoinText
from pilotlight_core.model.errors import BadInput, PilotlightError, Unauthenticated
from pilotlight_core.model.versions.public_keys import public_keys_of
from pilotlight_runtime.node.node_credentials import trusted_file, with_credentials
from pilotlight_runtime.node.node_join import CA_FILE, TOKEN, authorities, join_platform, main, read_token

KEY = bytes(range(32))
JOINED = {
    "node": "n1", "region": "eu", "zone": "eu-1", "pool": "", "purchase": "spot", "bus_url": "nats://bus:4222",
    "expires_at": 100.0,
}  # fmt: skip


def sender(status: int, body: object, seen: list[httpx.Request] | None = None) -> httpx.Client:
    def answer(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(request)
        return httpx.Response(status, content=body if isinstance(body, bytes) else msgspec.json.encode(body))

    return httpx.Client(transport=httpx.MockTransport(answer))


def test_only_the_public_key_leaves_the_host() -> None:
    """Its seed is in the credentials."""
    seen: list[httpx.Request] = []
    made = join_platform("http://gw/", "tok", "n1", sender(201, JOINED, seen), 7.0)
    (request,) = seen
    sent = msgspec.json.decode(request.content)
    assert str(request.url) == "http://gw/v1/nodes/join"
    assert (sent["token"], sent["node"]) == ("tok", "n1")
    assert is_public_key(sent["key"], NkeyKind.USER)
    assert made.key().public == sent["key"]
    assert made.seed.encode() not in request.content
    assert (made.zone, made.spot, made.renewed_at, made.expires_at) == ("eu-1", True, 7.0, 100.0)


def test_a_refusal_is_the_platforms() -> None:
    """What it says; and whoever is no gateway is told of."""
    with pytest.raises(Unauthenticated, match="used"):
        join_platform("http://gw", "t", "n1", sender(401, {"code": "unauthenticated", "detail": "used"}), 0.0)
    for status, body in ((200, b"<html>"), (201, {"node": "n1"}), (502, b"")):
        with pytest.raises(PilotlightError, match="no gateway"):
            join_platform("http://gw", "t", "n1", sender(status, body), 0.0)
    with pytest.raises(BadInput):
        join_platform("http://gw", "t", "a.b", sender(201, JOINED), 0.0)
    with pytest.raises(PilotlightError, match="no answer"):
        join_platform("gw", "t", "n1", httpx.Client(), 0.0)


def test_a_token_need_not_be_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which every user of the host can read."""
    monkeypatch.delenv(TOKEN, raising=False)
    with pytest.raises(BadInput):
        read_token("")
    monkeypatch.setenv(TOKEN, "of the environment\n")
    assert read_token("") == "of the environment"
    assert read_token("given") == "given"
    monkeypatch.setattr("sys.stdin", io.StringIO("of stdin\nmore"))
    assert read_token("-") == "of stdin"


def test_a_gateway_may_prove_its_name_by_an_authority_of_ones_own(tmp_path: Path) -> None:
    """A file without one is said to be so."""
    assert authorities("").verify_mode is ssl.CERT_REQUIRED
    for content in (None, "no certificate"):
        path = tmp_path / "ca.pem"
        if content is not None:
            path.write_text(content)
        with pytest.raises(BadInput, match="ca_file"):
            authorities(str(path))


def test_the_authority_may_be_that_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of all other processes; and who has none is told where it goes."""
    monkeypatch.setenv(CA_FILE, str(tmp_path / "none.pem"))
    assert main(["https://127.0.0.1:1", "--token", "t", "--file", str(tmp_path / "node.json")]) == 1
    assert f"no certificates in {tmp_path / 'none.pem'}" in capsys.readouterr().err

    def refuse(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] unable to get local issuer certificate")

    with pytest.raises(PilotlightError, match="--ca-file or PILOTLIGHT_CA_FILE"):
        join_platform("https://gw", "t", "n1", httpx.Client(transport=httpx.MockTransport(refuse)), 0.0)


def test_a_host_that_has_joined_is_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is sent; its token stays good."""
    path = tmp_path / "node.json"
    path.write_text("mine")
    assert main(["http://127.0.0.1:1", "--token", "t", "--file", str(path)]) == 1
    assert "is there already" in capsys.readouterr().err
    assert path.read_text() == "mine"


@contextmanager
def gateway(seen: list[bytes]) -> Iterator[str]:
    """One that lets everybody in."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.rfile.read(int(self.headers["content-length"])))
            body = msgspec.json.encode(JOINED)
            self.send_response(201)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    with ThreadPoolExecutor(1) as threads:
        threads.submit(server.serve_forever, 0.05)
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
    server.server_close()


def test_keys_behind_the_token_are_kept_and_shown_to_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The agent trusts them; without any the operator is told to name a file."""
    seen: list[bytes] = []
    text, folder = str(JoinText("pl_join_t_x", (KEY,))), tmp_path / "new"
    with gateway(seen) as url:
        for token, name in ((text, "with"), ("pl_join_t_x", "without")):
            assert main([url, "--token", token, "--node", "n1", "--file", str(folder / f"{name}.json")]) == 0
    told = capsys.readouterr().out.splitlines()

    assert [msgspec.json.decode(body)["token"] for body in seen] == ["pl_join_t_x"] * 2
    assert public_keys_of((folder / "with.trusted.pem").read_bytes()) == (KEY,)
    assert not (folder / "without.trusted.pem").exists()
    assert [line.partition(".json")[2] for line in told if "--credentials" in line] == ["", " --trusted-keys FILE"]


def test_who_joins_anew_trusts_whom_the_new_token_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Keys of a former one count no more: others take their place, or none."""
    path, other = tmp_path / "node.json", bytes(32)
    trusted = trusted_file(path)
    found = []
    with gateway([]) as url:
        for keys in ((KEY,), (other,), ()):
            path.unlink(missing_ok=True)
            assert main([url, "--token", str(JoinText("pl_join_t_x", keys)), "--node", "n1", "--file", str(path)]) == 0
            found.append(public_keys_of(trusted.read_bytes()) if trusted.exists() else ())
            left = with_credentials(AgentSettings(credentials=str(path)), 0.0)[0].trusted_keys

    assert found == [(KEY,), (other,), ()]
    assert left == ""
    assert [each.name for each in tmp_path.iterdir()] == ["node.json"]
