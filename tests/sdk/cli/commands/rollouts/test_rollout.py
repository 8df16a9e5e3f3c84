"""Commands about rollouts."""

from __future__ import annotations

import msgspec
import pytest

from tests.sdk.cli.rollout_answers import ROLLOUT
from tests.sdk.cli.shell import invoke, run
from tests.sdk.scripted import ScriptedPlatform, answer, problem

PATH = "/v1/apps/hello/rollout"
MORE = (
    "--answer-tolerance", "1%", "--weight", "cost=4", "--guard", "loss=amount:score.loss", "--hold-back", "10",
)  # fmt: skip
STARTED = {"rollout": ROLLOUT, "visible": ["It shows if it is slower by 12 %."], "warnings": ["Without pairs: egress."]}


def test_a_rollout_is_started_with_what_it_will_see(platform: ScriptedPlatform) -> None:
    """Before anything else; what is missing is a warning."""
    platform.will("POST", PATH, answer(STARTED, status=201))
    words = (
        "--canary",
        "v8",
        "--steps",
        "1,5,100",
        "--every",
        "10m",
        "--cohort-tenant",
        "acme",
        "--cohort-header",
        "X-Beta=1",
    )
    done = invoke(
        "rollout", "start", "hello", *words, "--tolerance", "5%", "--no-twin", "--on-undecided", "hold", *MORE
    )

    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("Rollout 3 of hello has begun: 1, 5, 100 % of the calls")
    assert "as far as that can be seen:\n  It shows if it is slower by 12 %.\n" in done.stdout
    assert "warning: Without pairs: egress." in done.stderr
    sent = platform.requests[0].json
    assert (sent["canary"], sent["steps"], sent["every_s"], sent["twin"]) == ("v8", [1, 5, 100], 600, False)
    assert (sent["cohort_tenants"], sent["cohort_headers"], sent["tolerance"]) == (["acme"], {"x-beta": "1"}, 0.05)
    assert (sent["on_undecided"], sent["hold_back"], sent["answer_tolerance"]) == ("hold", 10.0, 0.01)
    assert sent["weights"] == {"cost": 4.0}
    assert sent["guards"] == [{"name": "loss", "kind": "amount", "field": "score.loss", "weight": 1.0}]


@pytest.mark.parametrize(("state", "code"), [("promoted", 0), ("rolled_back", 3), ("superseded", 3)])
def test_who_waits_hears_how_it_ended(platform: ScriptedPlatform, state: str, code: int) -> None:
    """By the exit code, with the reason."""
    platform.will("POST", PATH, answer(STARTED, status=201))
    over = ROLLOUT | {"state": state, "held": "", "reason": "because of it", "verdict": "regressed"}
    platform.will("GET", PATH, answer(over))
    done = invoke("rollout", "start", "hello", "--wait")

    assert done.exit_code == code
    assert "because of it" in done.stderr


def test_another_rollout_meanwhile_is_said(platform: ScriptedPlatform) -> None:
    platform.will("POST", PATH, answer(STARTED, status=201))
    platform.will("GET", PATH, answer(ROLLOUT | {"id": "rol_2"}))
    done = invoke("rollout", "start", "hello", "--wait", "--json")

    assert done.exit_code == 3
    assert msgspec.json.decode(done.stdout)["id"] == "rol_2"
    assert "Another rollout" in done.stderr


def test_the_status_is_told_in_sentences(platform: ScriptedPlatform) -> None:
    """Why it is held, what is proven, and what was counted."""
    platform.will("GET", PATH, answer(ROLLOUT | {"paused_by": "key1", "frozen": True}))
    shown = run("rollout", "status", "hello")

    assert "hello.greet@v7 -> hello.greet@v8" in shown
    assert "held (calls): too few calls" in shown
    assert "paused by key1" in shown
    assert "frozen" in shown
    assert "not more than 20% worse" in shown
    assert "no alarm." in shown
    platform.will("GET", PATH, answer(ROLLOUT))
    assert msgspec.json.decode(run("rollout", "status", "hello", "--json"))["number"] == 3


def test_who_watches_stays_until_it_is_over(platform: ScriptedPlatform) -> None:
    platform.will("GET", PATH, answer(ROLLOUT), answer(ROLLOUT | {"state": "promoted", "reason": "verified"}))
    shown = run("rollout", "status", "hello", "--watch", "--every", "0.1")
    assert shown.count("rollout 3 of hello") == 2
    assert "because: verified" in shown


def test_ctrl_c_leaves_it_running_and_says_so(platform: ScriptedPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pilotlight.cli.rollout_watch.time.sleep", interrupt)
    platform.will("GET", PATH, answer(ROLLOUT))
    done = invoke("rollout", "status", "hello", "--watch")

    assert done.exit_code == 130
    assert "goes on without you" in done.stderr
    assert [request.method for request in platform.requests] == ["GET"]


def test_words_are_sent_with_their_reason(platform: ScriptedPlatform) -> None:
    platform.will("POST", f"{PATH}/abort", answer(ROLLOUT | {"state": "rolling_back"}))
    assert "rolling_back" in run("rollout", "abort", "hello", "--reason", "wrong weights", "--rollout", "rol_3")
    assert platform.requests[0].json == {"reason": "wrong weights", "rollout": "rol_3"}


def test_there_may_be_none(platform: ScriptedPlatform) -> None:
    """The advice says how one begins."""
    platform.will("GET", PATH, problem("not_found", "hello has had no rollout."))
    done = invoke("rollout", "status", "hello")
    assert done.exit_code == 1
    assert "rollout start" in done.stderr
    platform.will("GET", f"{PATH}s", answer({"rollouts": []}))
    assert "has had no rollout" in invoke("rollout", "list", "hello").stderr


@pytest.mark.parametrize(
    "words",
    [("--steps", "5,1"), ("--steps", "x"), ("--every", "soon"), ("--cohort-header", "beta=1"), ("--tolerance", "x")],
)
def test_what_is_wrong_is_said_before_anything_is_sent(platform: ScriptedPlatform, words: tuple[str, str]) -> None:
    done = invoke("rollout", "start", "hello", *words)
    assert done.exit_code == 2
    assert words[0] in done.stderr
    assert platform.requests == []


def test_without_an_app_the_last_of_each_is_listed(platform: ScriptedPlatform) -> None:
    """For operators with whose they are; of one app there are no others'."""
    platform.will("GET", "/v1/rollouts", answer({"rollouts": [ROLLOUT | {"tenant": "acme"}], "left": 2}))
    done = invoke("rollout", "list")
    assert "hello.greet@v8" in done.stdout
    assert "ramp, held (calls)" in done.stdout
    assert "2 more ended earlier" in done.stderr
    assert "acme:hello" in invoke("rollout", "list", "--all").stdout
    assert msgspec.json.decode(invoke("rollout", "list", "--json").stdout)["left"] == 2
    assert invoke("rollout", "list", "hello", "--all").exit_code == 2
