"""Webhooks of a whole platform: real receivers, of which the operator allows one address that is not public."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.system.support.platform import Platform, platform
from tests.waiting import wait_until

ALLOWED = "127.0.0.1"
Reply = Callable[[BaseHTTPRequestHandler], None]


@dataclass(kw_only=True)
class Receiver:
    """A server with one thread for each connection."""

    url: str = ""
    reply: Reply
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.got]


def answer(status: int, **headers: str) -> Reply:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("content-length", "0")
        handler.end_headers()

    return reply


@contextmanager
def receiver(reply: Reply, host: str = ALLOWED) -> Iterator[Receiver]:
    made = Receiver(reply=reply)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            made.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
            made.reply(self)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer((host, 0), Handler)
    made.url = f"http://{host}:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def hooked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform that may send to one address of this machine; it runs no functions."""
    folder: Path = tmp_path_factory.mktemp("webhooks")
    with platform(folder, "--no-agent", env={"PILOTLIGHT_WEBHOOK_ALLOW": ALLOWED}) as running:
        yield running


def made(hooked: Platform, url: str) -> dict[str, Any]:
    """A new webhook."""
    found = hooked.http.post("/v1/webhooks", json={"url": url})
    assert found.status_code == 201, found.text
    whole: dict[str, Any] = found.json()
    return whole


def ping(hooked: Platform, webhook: dict[str, Any]) -> str:
    """The id of a ping's delivery."""
    return str(hooked.http.post(f"/v1/webhooks/{webhook['id']}/ping").json()["id"])


def tried(hooked: Platform, webhook: dict[str, Any], delivery: str, attempts: int = 1) -> dict[str, Any]:
    """A delivery, once it was tried so often."""

    def found() -> dict[str, Any] | None:
        log = hooked.http.get(f"/v1/webhooks/{webhook['id']}/deliveries").json()["deliveries"]
        return next((one for one in log if one["id"] == delivery and len(one["attempts"]) >= attempts), None)

    return wait_until(found, f"{attempts} attempts", 30.0)


def test_a_delivery_arrives_and_its_signature_holds(hooked: Platform) -> None:
    """By the command line; through the rotation of its secret too."""
    with receiver(answer(204)) as there:
        secret = hooked.cli("webhook", "create", there.url, "--label", "test").stdout.strip()
        webhook = json.loads(hooked.cli("webhook", "list", "--json").stdout)[-1]
        first = tried(hooked, webhook, hooked.cli("webhook", "ping", webhook["id"]).stdout.strip())
        fresh = hooked.cli("webhook", "rotate", webhook["id"], "--overlap", "1h").stdout.strip()
        second = tried(hooked, webhook, ping(hooked, webhook))
        again = hooked.cli("webhook", "resend", webhook["id"], first["id"]).stdout.strip()
        tried(hooked, webhook, first["id"], attempts=2)
        log = hooked.cli("webhook", "deliveries", webhook["id"]).stdout
        hooked.cli("webhook", "delete", webhook["id"])

    assert first["state"] == second["state"] == "delivered"
    assert there.ids == [first["id"], second["id"], first["id"]]
    assert again == first["id"]
    assert there.got[0][1] == there.got[2][1]
    assert Webhook(secret).verify(there.got[0][1], there.got[0][0])
    for known in (secret, fresh):
        assert Webhook(known).verify(there.got[1][1], there.got[1][0])
    assert first["id"] in log
    assert "204" in log


def test_a_receiver_that_fails_is_asked_again_under_the_same_id(hooked: Platform) -> None:
    """At once, and five seconds later."""
    with receiver(answer(500)) as there:
        webhook = made(hooked, there.url)
        delivery = tried(hooked, webhook, ping(hooked, webhook))
        assert (delivery["state"], delivery["attempts"][0]["status"]) == ("pending", 500)
        there.reply = answer(200)
        delivery = tried(hooked, webhook, delivery["id"], attempts=2)

    assert delivery["state"] == "delivered"
    assert len(set(there.ids)) == 1
    assert delivery["attempts"][1]["at"] - delivery["attempts"][0]["at"] >= 4.9


def test_a_redirect_is_not_followed(hooked: Platform) -> None:
    """Wherever it leads."""
    with receiver(answer(200)) as hidden, receiver(answer(307, location=hidden.url)) as there:
        webhook = made(hooked, there.url)
        delivery = tried(hooked, webhook, ping(hooked, webhook))

    assert delivery["attempts"][0]["error"] == "redirects are not followed"
    assert not hidden.got


def test_a_slow_receiver_delays_nobody_else(hooked: Platform) -> None:
    """It holds its own attempts until they are given up; another webhook's are delivered meanwhile."""
    let_go = threading.Event()
    with receiver(lambda _: (let_go.wait(60), None)[1]) as slow, receiver(answer(200)) as quick:
        try:
            stuck, well = made(hooked, slow.url), made(hooked, quick.url)
            for _ in range(8):
                ping(hooked, stuck)
            wait_until(lambda: len(slow.got) == 4, "four attempts are under way")
            for _ in range(3):
                delivery = tried(hooked, well, ping(hooked, well))
                assert delivery["state"] == "delivered"
            assert len(slow.got) == 4
            log = hooked.http.get(f"/v1/webhooks/{stuck['id']}/deliveries").json()["deliveries"]
            assert all(not one["attempts"] for one in log)
        finally:
            let_go.set()


@pytest.mark.parametrize("host", ["127.0.0.2", "[::ffff:127.0.0.2]", "[::1]"])
def test_an_address_that_is_private_and_not_allowed_is_refused_at_once(hooked: Platform, host: str) -> None:
    """Though somebody listens there."""
    with receiver(answer(200), "127.0.0.2") as hidden:
        refused = hooked.http.post("/v1/webhooks", json={"url": hidden.url.replace("127.0.0.2", host)})

    assert refused.status_code == 422
    assert "refused address" in refused.text
    assert not hidden.got


@pytest.mark.parametrize("host", ["2130706434", "0x7f000002", "127.2", "0177.0.0.2"])
def test_a_name_of_such_an_address_is_not_connected_to(hooked: Platform, host: str) -> None:
    """Each is a name that this machine's resolver turns into the address; the attempt says why it was not made."""
    assert socket.gethostbyname(host) == "127.0.0.2"
    with receiver(answer(200), "127.0.0.2") as hidden:
        created = hooked.http.post("/v1/webhooks", json={"url": hidden.url.replace("127.0.0.2", host)})
        (attempt,) = tried(hooked, created.json(), ping(hooked, created.json()))["attempts"]

    assert (attempt["status"], attempt["error"]) == (0, "an address of the name is refused: loopback")
    assert not hidden.got


def test_it_goes_on_over_the_death_of_whoever_sends(hooked: Platform) -> None:
    """Killed in the middle of an attempt: it is sent again, under the same id."""
    let_go = threading.Event()
    with receiver(lambda _: (let_go.wait(60), None)[1]) as there:
        webhook = made(hooked, there.url)
        delivery = ping(hooked, webhook)
        wait_until(lambda: there.got, "it is being sent")
        hooked.kill("duties")
        there.reply = answer(200)
        let_go.set()
        assert tried(hooked, webhook, delivery)["state"] == "delivered"

    assert set(there.ids) == {delivery}
    assert len(there.got) == 2
