"""Attempts at real servers, with and without TLS, and at what is none."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pilotlight_supervisor.doctor import network_probes
from pilotlight_supervisor.doctor.network_probes import (
    ReachStep,
    begin_bus,
    begin_connection,
    begin_http,
    without_password,
)
from tests.builders.certificates import a_server, an_authority
from tests.supervisor.doctor.reached_servers import a_bus, serving


@contextmanager
def a_listener(answer: Callable[[socket.socket], object]) -> Iterator[int]:
    """What accepts one connection and does that with it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            made, _ = listener.accept()
            with made:
                answer(made)

        thread = threading.Thread(target=accept)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    return an_authority(tmp_path)


def test_an_api_is_asked_with_its_certificate_verified(tmp_path: Path, authority: Path) -> None:
    """Its status, its time, and what its certificate says come back."""
    with serving(tmp_path) as port:
        reach = begin_http("API", f"https://localhost:{port}", "/healthz", str(authority), only=True).wait()

    assert (reach.problem, reach.status, reach.secure) == ("", 200, True)
    assert reach.names == ("localhost", "127.0.0.1")
    assert reach.expires_at is not None
    assert reach.date
    assert reach.asked_at <= reach.answered_at


def test_a_certificate_of_another_name_or_authority_is_told_apart(tmp_path: Path, authority: Path) -> None:
    """With the sentences that all processes have."""
    other = an_authority(tmp_path / "other")
    with serving(tmp_path, "gw-9.example.com") as port:
        named = begin_http("API", f"https://localhost:{port}", "/healthz", str(authority), only=True).wait()
    with serving(tmp_path) as port:
        strange = begin_http("API", f"https://localhost:{port}", "/healthz", str(other), only=True).wait()

    assert named.step is strange.step is ReachStep.TLS
    assert "its certificate is of another name" in named.problem
    assert f"of no authority among those in {other}" in strange.problem


def test_a_certificate_that_has_ended_is_told_of(tmp_path: Path, authority: Path) -> None:
    """By this machine's clock."""
    files = a_server(tmp_path, age_days=20, days=10)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)

    def shake(made: socket.socket) -> None:
        with pytest.raises(ssl.SSLError):
            context.wrap_socket(made, server_side=True)

    with a_listener(shake) as port:
        reach = begin_http("API", f"https://localhost:{port}", "/healthz", str(authority), only=True).wait()

    assert "expired" in reach.problem


def test_what_is_not_there_is_a_failed_connection() -> None:
    """And a name that nobody has a failed name; neither repeats a password."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    refused = begin_connection("ledger", f"postgresql://me:secret@127.0.0.1:{port}/x?sslmode=off").wait()
    unnamed = begin_http("API", "http://nobody.invalid", "/", "", only=True).wait()

    assert (refused.step, refused.problem) == (ReachStep.CONNECTION, "Connection refused")
    assert refused.url == f"postgresql://127.0.0.1:{port}/x"
    assert unnamed.step is ReachStep.NAME
    assert unnamed.problem
    assert begin_http("API", "nonsense", "/", "", only=True).wait().problem.startswith("nonsense is no address")


@pytest.mark.parametrize(
    ("url", "bare"),
    [
        ("postgresql://u:p/w@db/ledger", "postgresql://db/ledger"),
        ("postgresql+psycopg://u:p#w?x@y@db:5433/ledger", "postgresql+psycopg://db:5433/ledger"),
        ("nats://bus:4222", "nats://bus:4222"),
        ("NATS://u:p\nw@[::1]:4222", "NATS://[::1]:4222"),
        ("u:p/w@db", "db"),
    ],
)
def test_no_password_is_shown_whatever_is_in_it(url: str, bare: str) -> None:
    """Also where it was not escaped, which an error would repeat in part."""
    assert without_password(url) == bare


def test_an_attempt_knows_no_password() -> None:
    """It goes to the host behind it, and nothing of it is in what came of it."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    reach = begin_connection("ledger", f"postgresql://me:hush/hush#hush@127.0.0.1:{port}/x").wait()

    assert (reach.step, reach.problem) == (ReachStep.CONNECTION, "Connection refused")
    assert "hush" not in str(vars(reach))


@pytest.mark.parametrize("url", ["nats://[x", "nats://bus:99999", "nats://bus:port", "nats://bus\x00:1"])
def test_what_is_no_address_is_told_of(url: str) -> None:
    """It ends nothing."""
    assert begin_bus(url, "").wait().problem


def test_what_is_no_http_is_told_of() -> None:
    """It is no answer."""
    with a_listener(lambda made: made.sendall(b"SSH-2.0-OpenSSH\r\n\r\n")) as port:
        reach = begin_http("API", f"http://127.0.0.1:{port}", "/healthz", "", only=True).wait()

    assert reach.step is ReachStep.ANSWER
    assert reach.problem


def test_who_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step that it hangs in is told."""
    monkeypatch.setattr(network_probes, "PROBE_S", 0.05)
    done = threading.Event()
    with a_listener(lambda made: done.wait(30)) as port:
        reach = begin_bus(f"nats://127.0.0.1:{port}", "").wait()
        done.set()

    assert reach.step is ReachStep.ANSWER
    assert reach.problem


def test_a_bus_greets(tmp_path: Path) -> None:
    """What counts of it comes back; `tls://` goes no further with a server that has none."""
    with a_bus(tmp_path, secure=False) as port:
        plain = begin_bus(f"nats://me:secret@127.0.0.1:{port}", "").wait()
        insisted = begin_bus(f"tls://127.0.0.1:{port}", "").wait()

    assert (plain.problem, plain.secure, plain.url) == ("", False, f"nats://127.0.0.1:{port}")
    assert plain.greeting is not None
    assert (plain.greeting.jetstream, plain.greeting.auth_required, plain.greeting.max_payload) == (True, True, 4 << 20)
    assert insisted.step is ReachStep.TLS
    assert "does not insist on TLS" in insisted.problem


def test_a_bus_with_tls_shows_its_certificate(tmp_path: Path, authority: Path) -> None:
    """To who believes its authority."""
    other = an_authority(tmp_path / "other")
    with a_bus(tmp_path, secure=True) as port:
        good = begin_bus(f"tls://127.0.0.1:{port}", str(authority)).wait()
        strange = begin_bus(f"tls://127.0.0.1:{port}", str(other)).wait()

    assert (good.problem, good.secure, good.names) == ("", True, ("localhost", "127.0.0.1"))
    assert strange.step is ReachStep.TLS
    assert "of no authority" in strange.problem


def test_what_is_no_bus_is_told_of() -> None:
    """Such as a gateway's port."""
    with a_listener(lambda made: made.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as port:
        reach = begin_bus(f"nats://127.0.0.1:{port}", "").wait()

    assert reach.problem == "what answers there is no nats-server"
