"""Commands about webhooks: what they send, and what they print."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from pilotlight.cli.main import app
from tests.sdk.scripted import Answer, ScriptedPlatform, answer

HOOK: dict[str, Any] = {
    "id": "wh_1", "url": "https://example.com/", "events": ["job.failed"], "label": "ops", "created_at": 0.0,
    "disabled": False, "disabled_because": "", "failing_since": None,
}  # fmt: skip
DELIVERY: dict[str, Any] = {
    "id": "msg_1", "event": "job.failed", "about": "call_1", "state": "failed", "created_at": 0.0, "next_at": None,
    "attempts": [{"at": 0.0, "ms": 12.0, "status": 500, "error": ""}],
}  # fmt: skip


def run(*words: str) -> str:
    done = CliRunner().invoke(app, ["webhook", *words])
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_a_webhook_is_made(platform: ScriptedPlatform) -> None:
    """The secret is all of stdout, for `$(…)`; without --events all events are sent."""
    made = HOOK | {"secret": "whsec_x"}
    platform.will("POST", "/v1/webhooks", answer(made, 201))

    assert run("create", "https://example.com/", "--events", "job.failed, job.expired", "--label", "ops") == "whsec_x\n"
    assert platform.requests[0].json == {
        "url": "https://example.com/", "events": ["job.failed", "job.expired"], "label": "ops",
    }  # fmt: skip
    assert msgspec.json.decode(run("create", "https://example.com/", "--json")) == made
    assert len(platform.requests[1].json["events"]) == 4


def test_a_misspelt_event_is_answered_with_the_one_that_was_meant(platform: ScriptedPlatform) -> None:
    """The error names the nearest event, and nothing is sent."""
    done = CliRunner().invoke(app, ["webhook", "create", "https://example.com/", "--events", "job.failde"])

    assert done.exit_code != 0
    assert "Did you mean job.failed?" in str(done.exception) + done.output
    assert platform.requests == []


def test_webhooks_are_listed(platform: ScriptedPlatform) -> None:
    """The list shows which webhooks are on, failing or disabled, and why."""
    failing = HOOK | {"id": "wh_2", "failing_since": time.time() - 7_300}
    disabled = HOOK | {"id": "wh_3", "disabled": True, "disabled_because": "it answered 410 Gone"}
    platform.will("GET", "/v1/webhooks", answer({"webhooks": [HOOK, failing, disabled]}))

    lines = run("list").splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["wh_1", "wh_2", "wh_3"]
    assert "on" in lines[0].split()
    assert "failing for 2h" in lines[1]
    assert "disabled: it answered 410 Gone" in lines[2]
    assert len(msgspec.json.decode(run("list", "--json"))) == 3


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        (("update", "wh_1", "--url", "https://x.example/"), {"url": "https://x.example/"}),
        (("update", "wh_1", "--events", "job.failed"), {"events": ["job.failed"]}),
        (("enable", "wh_1"), {"disabled": False}),
        (("disable", "wh_1"), {"disabled": True}),
    ],
)
def test_a_webhook_is_changed(platform: ScriptedPlatform, words: tuple[str, ...], sent: dict[str, Any]) -> None:
    """The request has only the given fields."""
    platform.will("PATCH", "/v1/webhooks/wh_1", answer(HOOK))

    assert run(*words) == "wh_1 (on): job.failed to https://example.com/\n"
    assert platform.requests[0].json == sent
    assert msgspec.json.decode(run(*words, "--json")) == HOOK


def test_a_webhook_is_deleted_and_its_secret_rotated(platform: ScriptedPlatform) -> None:
    """The new secret is all of stdout."""
    platform.will("DELETE", "/v1/webhooks/wh_1", Answer(status=204))
    platform.will("POST", "/v1/webhooks/wh_1/rotate", answer(HOOK | {"secret": "whsec_y", "replaced_until": 1.0}, 201))

    assert run("delete", "wh_1") == "Deleted wh_1.\n"
    assert run("rotate", "wh_1", "--overlap", "12h") == "whsec_y\n"
    assert platform.requests[-1].json == {"overlap_s": 43_200.0}
    assert msgspec.json.decode(run("rotate", "wh_1", "--json"))["secret"] == "whsec_y"


def test_deliveries_are_listed_sent_again_and_tried(platform: ScriptedPlatform) -> None:
    """The list shows the last attempt of each delivery and the time of the next one."""
    waiting = DELIVERY | {"id": "msg_2", "state": "pending", "next_at": time.time() + 120.5, "attempts": []}
    late = {"at": 0.0, "ms": 15_000.0, "status": 0, "error": "no answer within 15 s"}
    platform.will(
        "GET", "/v1/webhooks/wh_1/deliveries",
        answer({"deliveries": [waiting, DELIVERY, DELIVERY | {"attempts": [late]}]}),
    )  # fmt: skip
    platform.will("POST", "/v1/webhooks/wh_1/deliveries/msg_1/resend", answer(DELIVERY, 202))
    platform.will("POST", "/v1/webhooks/wh_1/ping", answer(waiting, 202))

    lines = run("deliveries", "wh_1", "--limit", "3").splitlines()[1:]
    assert "next in 2m" in lines[0]
    assert lines[1].split()[-3:] == ["500", "12", "ms"]
    assert "no answer within 15 s" in lines[2]
    assert run("resend", "wh_1", "msg_1") == "msg_1\n"
    assert run("ping", "wh_1") == "msg_2\n"
    for words in (("deliveries", "wh_1"), ("resend", "wh_1", "msg_1"), ("ping", "wh_1")):
        assert msgspec.json.decode(run(*words, "--json"))
