"""`pilotlight scale`: what it sends, what it shows, and what it refuses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.sdk.cli.shell import cells, invoke, run
from tests.sdk.scripted import ScriptedPlatform, answer, problem

PATH = "/v1/functions/llm.chat/autoscaler"
SAID = "by 'pilotlight scale' with the key k1"


def bound(value: float, because: str = "as deployed", *, deployed: float = 0, ends_at: float | None = None) -> Any:
    return {"value": value, "because": because, "deployed": deployed, "ends_at": ends_at}


def bounds(**more: Any) -> Any:
    """What a platform answers."""
    return {
        "function": "llm.chat", "version": "llm.chat@v3", "at": 1.0, "changes_at": None, "warm": [],
        "min_containers": bound(2, SAID, ends_at=86_400.0), "max_containers": bound(10, deployed=10),
        "buffer_containers": bound(0), "scaledown_window": bound(60.0, deployed=60.0),
        "zero_window": bound(300.0, SAID, deployed=60.0),
        "forecast": bound(value=False, because=SAID, deployed=True),
    } | more  # fmt: skip


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This machine's zone."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def test_what_holds_is_shown_with_whose_word_it_is(platform: ScriptedPlatform) -> None:
    """And until when, in this machine's zone; windows have a line each."""
    window = {"when": "Mon-Fri 08:00-18:00", "tz": "Europe/Berlin", "containers": 2, "open": True, "changes_at": 0.0}
    later = window | {"containers": 1, "open": False, "changes_at": 3_600.0}
    platform.will("GET", PATH, answer(bounds(warm=[window, later, window | {"changes_at": None}])))

    shown = run("scale", "llm.chat")

    assert cells(shown)[:7] == [
        ["bound", "value", "deployed", "because", "until"],
        ["min", "2", "0", SAID, "1970-01-02 00:00 UTC"],
        ["max", "10", "10", "as deployed"],
        ["buffer", "0", "0", "as deployed"],
        ["scaledown-window", "60 s", "60 s", "as deployed"],
        ["zero-window", "300 s", "60 s", SAID],
        ["forecast", "off", "on", SAID],
    ]
    assert shown.splitlines()[7:] == [
        "Warm window Mon-Fri 08:00-18:00 Europe/Berlin: 2 containers, open, closes 1970-01-01 00:00 UTC.",
        "Warm window Mon-Fri 08:00-18:00 Europe/Berlin: 1 container, not open, opens 1970-01-01 01:00 UTC.",
        "Warm window Mon-Fri 08:00-18:00 Europe/Berlin: 2 containers, open.",
    ]


def test_what_is_named_is_sent_and_nothing_else(platform: ScriptedPlatform) -> None:
    """What stays is not mentioned."""
    platform.will("PATCH", PATH, answer(bounds()))

    run("scale", "llm.chat", "--min", "2", "--max", "20", "--for", "2h")
    window = ("--scaledown-window", "0", "--zero-window", "90", "--no-forecast")
    run("scale", "llm.chat", "--buffer", "1", *window, "--until", "2999-01-01 00:00")

    first, second = (request.json for request in platform.requests)
    assert first == {"min_containers": 2, "max_containers": 20, "ends_at": None, "ends_in_s": 7_200.0}
    assert (second["buffer_containers"], second["scaledown_window"], second["ends_in_s"]) == (1, 0.0, None)
    assert (second["forecast"], second["zero_window"]) == (False, 90.0)
    assert second["ends_at"] == 32_472_144_000.0
    assert "min_containers" not in second


def test_a_reset_ends_all_of_it(platform: ScriptedPlatform) -> None:
    """As JSON too, with times in unix seconds."""
    platform.will("DELETE", PATH, answer(bounds(min_containers=bound(0))))
    assert cells(run("scale", "llm.chat", "--reset"))[1] == ["min", "0", "0", "as deployed"]
    assert msgspec.json.decode(run("scale", "llm.chat", "--reset", "--json"))["min_containers"]["value"] == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--until", "18:00", "--for", "2h", "--min", "1"), "give one of them"),
        (("--reset", "--min", "1"), "--reset ends all that was said"),
        (("--reset", "--for", "2h"), "--reset ends all that was said"),
        (("--for", "2h"), "say what ends then: --min, --max"),
        (("--min", "1", "--for", "2 hours"), "expected a time such as 12h"),
        (("--min", "1", "--until", "soon"), "expected a time such as 18:00"),
        (("--min", "-1"), "--min"),
        (("--max", "0"), "--max"),
    ],
)
def test_what_makes_no_sense_is_refused_here(words: tuple[str, ...], says: str) -> None:
    """No platform is asked."""
    done = invoke("scale", "llm.chat", *words)
    assert done.exit_code == 2
    assert says in " ".join(done.stderr.split())


def test_an_unknown_function_is_an_error_with_advice(platform: ScriptedPlatform) -> None:
    platform.will("GET", PATH, problem("unknown_function", "There is no function llm.chat."))
    assert "'pilotlight app list' shows what is deployed" in invoke("scale", "llm.chat").stderr


def test_the_help_has_examples() -> None:
    assert "pilotlight scale llm.chat --min 2 --max 20 --until 18:00" in run("scale", "--help")
