"""Commands about apps: what is deployed, how it is stopped, and who may call it."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from pilotlight import App
from tests.sdk.cli.shell import cells, invoke, on_terminal, run
from tests.sdk.scripted import Answer, ScriptedPlatform, answer, problem


@pytest.mark.parametrize("words", [("app", "stop", "x"), ("app", "history", "x"), ("logs", "x")], ids=" ".join)
def test_an_unknown_app_is_an_error_with_advice(platform: ScriptedPlatform, words: tuple[str, ...]) -> None:
    """The advice names the command that lists the apps."""
    refused = problem("not_found", "There is no app x.")
    for method, path in (("POST", "stop"), ("GET", "history"), ("GET", "logs")):
        platform.will(method, f"/v1/apps/x/{path}", refused)
    assert "'pilotlight app list' shows what is deployed." in invoke(*words).stderr


def test_an_app_is_shared_and_unshared(platform: ScriptedPlatform) -> None:
    """An app is shared with one tenant or with everybody."""
    platform.will("PUT", "/v1/apps/llm/shares/acme", answer({"tenant": "acme", "functions": []}))
    platform.will("PUT", "/v1/apps/llm/shares/*", answer({"tenant": "*", "functions": ["chat"]}))
    platform.will("DELETE", "/v1/apps/llm/shares/acme", Answer(status=204))

    assert run("app", "share", "llm", "acme") == "acme may call all functions of llm.\n"
    assert run("app", "share", "llm", "*", "chat") == "Everybody may call chat of llm.\n"
    assert [request.json for request in platform.requests] == [{"functions": []}, {"functions": ["chat"]}]
    assert msgspec.json.decode(run("app", "share", "llm", "acme", "--json"))["tenant"] == "acme"
    assert run("app", "unshare", "llm", "acme") == "llm is not shared with acme any more.\n"


def test_an_app_is_stopped(platform: ScriptedPlatform) -> None:
    """The command names the app, or prints the platform's answer as JSON."""
    platform.will("POST", "/v1/apps/search/stop", answer({"app": "search", "stopped": True}))
    assert run("app", "stop", "search") == "Stopped search.\n"
    assert msgspec.json.decode(run("app", "stop", "search", "--json"))["stopped"] is True


def test_an_app_is_deleted_once_somebody_says_yes(platform: ScriptedPlatform) -> None:
    """Where nobody can be asked nothing is deleted, and the error says how."""
    platform.will("DELETE", "/v1/apps/search", answer({"app": "search", "revision": 3, "deleted": True}))

    refused = invoke("app", "delete", "search")
    assert refused.exit_code == 1
    assert "search is not deleted: to delete it, say yes or add --yes." in refused.stderr
    assert "Deleted" not in on_terminal("app", "delete", "search", typed="n\n")
    assert not platform.requests

    assert "Deleted search." in on_terminal("app", "delete", "search", typed="y\n")
    assert run("app", "delete", "search", "--yes") == "Deleted search.\n"
    assert msgspec.json.decode(run("app", "delete", "search", "-y", "--json"))["deleted"] is True


def embed(text: str) -> str:
    return text


SPEC = msgspec.json.decode(msgspec.json.encode(App("search").gpu_function(gpu=["H100", "cpu"])(embed).spec))
FUNCTION = {"name": "embed", "version": "search.embed@v7", "version_id": "ver_1", "containers": 2, "spec": SPEC,
            "artifacts": [{"kind": "weights", "name": "tiny", "files": 2, "size": 10}], "schedules": [],
    "hooks": [{"stage": "preprocess", "version_id": "ver_9", "containers": 3}],}  # fmt: skip
APPS = [
    {"app": "search", "revision": 3, "deployed_at": time.time() - 7_200, "stopped": False, "functions": [FUNCTION]},
    {"app": "old", "revision": 1, "deployed_at": 0.0, "stopped": True, "functions": []},
]
HISTORY = [
    {
        "revision": 1,
        "at": time.time() - 90_000,
        "by": "k1",
        "functions": {"embed": "ver_0"},
        "versions": {"embed": "v6"},
        "message": "",
    },
    {
        "revision": 2,
        "at": time.time() - 10_800,
        "by": "k1",
        "functions": {"embed": "ver_1"},
        "versions": {"embed": "v7"},
        "message": "larger",
    },
]
SHARES = [{"grantee": "*", "functions": ["embed"]}, {"grantee": "acme", "functions": []}]
SHARED = [{"ref": "zoo:llm.chat", "owner": "zoo", "app": "llm", "function": "chat", "endpoint": ""}]


@pytest.mark.parametrize(
    ("words", "path", "name", "items", "rows"),
    [
        ("list", "/v1/apps", "apps", APPS,
         [["app", "function", "version", "needs", "containers", "deployed"],
          ["search", "embed", "v7", "H100 or CPU", "2", "2h ago"],
          ["search", "embed (preprocess)", "v7", "CPU", "3", "2h ago"], ["old", "-", "-", "-", "0", "stopped"]]),
        ("history search", "/v1/apps/search/history", "history", HISTORY,
         [["revision", "deployed", "by", "functions", "message"],
          ["2", "3h ago", "k1", "embed@v7", "larger"], ["1", "1d ago", "k1", "embed@v6"]]),
        ("shares search", "/v1/apps/search/shares", "shares", SHARES,
         [["tenant", "functions"], ["*", "embed"], ["acme", "all"]]),
        ("shared", "/v1/shared", "shared", SHARED, [["function", "owner"], ["zoo:llm.chat", "zoo"]]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_lists_are_tables_or_json(
    platform: ScriptedPlatform, words: str, path: str, name: str, items: list[Any], rows: list[list[str]]
) -> None:
    """A list is a table, with --json the platform's answer, and a sentence if it is empty."""
    platform.will("GET", path, answer({name: items}), answer({name: items}), answer({name: []}))
    assert cells(run("app", *words.split())) == rows
    assert msgspec.json.decode(run("app", *words.split(), "--json")) == items
    empty = invoke("app", *words.split())
    assert (empty.exit_code, empty.stdout, empty.stderr.count("\n")) == (0, "", 1)


def test_what_everybody_may_call_is_listed_on_request(platform: ScriptedPlatform) -> None:
    """From as many pages as are needed; the rest is said to be there."""
    one = SHARED[0]
    path = "/v1/shared"
    platform.will("GET", path, answer({"shared": [one] * 1_000, "next": "x"}), answer({"shared": [one], "next": "y"}))

    done = invoke("app", "shared", "--all", "--owner", "zoo", "-n", "1001", "--json")

    assert len(msgspec.json.decode(done.stdout)) == 1_001
    asked = [request.query for request in platform.asked(path)]
    assert asked == ["everybody=true&owner=zoo&limit=1000", "everybody=true&owner=zoo&limit=1&cursor=x"]
    platform.will("GET", path, answer({"shared": [one], "next": "z"}))
    assert "There are more than 1: -n shows more" in invoke("app", "shared", "-n", "1").stderr


def test_what_runs_by_itself_is_listed(platform: ScriptedPlatform) -> None:
    """The next first, on the clock of its zone; what does not run last; of one app on request."""
    at = 1_700_000_000
    timed = [
        {"schedule": {"cron": "0 6 * * *", "tz": "Europe/Berlin"}, "next_tick": at + 3_600},
        {"schedule": {"method": "refresh", "period_s": 5_400}, "next_tick": at},
    ]
    stopped = {**FUNCTION, "schedules": [{"schedule": {"period_s": 60}, "next_tick": None}]}
    apps = [{**APPS[0], "functions": [{**FUNCTION, "schedules": timed}]}, {**APPS[1], "functions": [stopped]}]
    platform.will("GET", "/v1/apps", *[answer({"apps": one}) for one in (apps, apps, apps, APPS)])

    head, *rows = cells(run("app", "schedules"))
    assert head == ["function", "schedule", "next tick"]
    assert [row[0] for row in rows] == ["search.embed.refresh", "search.embed", "old.embed"]
    assert rows[1][1:] == ["0 6 * * *", "2023-11-15 00:13:20 Europe/Berlin (in 0s)"]
    assert rows[2][1:] == ["every 1m", "stopped"]
    (row,) = msgspec.json.decode(run("app", "schedules", "old", "--json"))
    assert (row["function"], row["next_tick"], row["version"]) == ("old.embed", None, "search.embed@v7")
    assert "There is no app mars." in invoke("app", "schedules", "mars").stderr
    assert "Nothing runs by itself" in invoke("app", "schedules").stderr


def test_an_app_is_rolled_back(platform: ScriptedPlatform) -> None:
    """What runs where then is said in sentences."""
    back = {"app": "hello", "revision": 4, "back_to": 1, "sentences": ["12 jobs of greet: hello.greet@v1 runs them."]}
    platform.will("POST", "/v1/apps/hello/rollback", answer(back))
    done = invoke("app", "rollback", "hello", "--to", "1", "--reason", "slow")

    assert done.stdout == "Rolled hello back to revision 1 (revision 4).\n12 jobs of greet: hello.greet@v1 runs them.\n"
    assert platform.requests[0].json == {"to": 1, "reason": "slow"}


def test_a_deploy_without_traffic_is_told_apart_in_the_history(platform: ScriptedPlatform) -> None:
    """Its versions serve nobody."""
    line = {"revision": 2, "at": 0.0, "by": "k", "versions": {"greet": "v2"}, "message": "faster", "traffic": False}
    platform.will("GET", "/v1/apps/hello/history", answer({"app": "hello", "history": [line]}))

    assert "no traffic: faster" in invoke("app", "history", "hello").stdout
