"""Commands that list: tables for people, JSON for scripts."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from pilotlight import App
from pilotlight.cli.main import app
from pilotlight.cli.output import milliseconds, size, span
from tests.sdk.scripted import Answer, ScriptedPlatform, answer, problem


def run(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.stderr
    return done.stdout


def embed(text: str) -> str:
    return text


SPEC = msgspec.json.decode(msgspec.json.encode(App("search").gpu_function(gpu=["H100", "cpu"])(embed).spec))
FUNCTION = {"name": "embed", "version": "search.embed@v7", "version_id": "ver_1", "containers": 2, "spec": SPEC}
NOW = time.time()
HOURS = 10_800
SCRIPT: dict[str, Any] = {
    "/v1/apps": {"apps": [
        {"app": "search", "revision": 3, "deployed_at": NOW - 7200, "stopped": False, "functions": [FUNCTION]},
        {"app": "old", "revision": 1, "deployed_at": 0.0, "stopped": True, "functions": []},
    ]},
    "/v1/apps/search/history": {"app": "search", "history": [
        {"revision": 1, "at": NOW - 90_000, "by": "k1", "functions": {"embed": "ver_0"}, "message": ""},
        {"revision": 2, "at": NOW - HOURS, "by": "k1", "functions": {"embed": "ver_1"}, "message": "larger"},
    ]},
    "/v1/containers": {"containers": [{
        "id": "ctr_1", "app": "search", "function": "embed", "state": "ready", "calls": 5, "running": 1, "slots": 4,
        "age_s": 65.0, "idle_s": 0.0, "memory_bytes": 2_500_000, "node": "n1", "slice": "cpu-0",
        "sandbox": "bubblewrap",
    }]},
    "/v1/keys": {"keys": [
        {"id": "k1", "label": "ci", "scopes": ["invoke", "deploy"], "created_at": NOW - HOURS,
         "expires_at": NOW + 100_000, "revoked": False},
        {"id": "k2", "label": "", "scopes": ["invoke"], "created_at": NOW - HOURS, "expires_at": None, "revoked": True},
    ]},
    "/v1/tenants/acme/keys": {"keys": []},
    "/v1/tenants": {"tenants": [
        {"name": "acme", "tier": "paid", "weight": 1.5, "created_at": NOW - HOURS, "disabled": False},
        {"name": "zoo", "tier": "free", "weight": 1.0, "created_at": NOW - HOURS, "disabled": True},
    ]},
    "/v1/tiers": {"tiers": [
        {"name": "free", "rank": 0, "weight": 1.0, "priority_ceiling": "standard", "reserved_share": 0.25,
         "limits": {"requests_per_s": 10.0, "concurrency": 5}, "source": "configuration"},
        {"name": "paid", "rank": 1, "weight": 4.0, "priority_ceiling": "interactive", "reserved_share": 0.0,
         "limits": {}, "source": "registry"},
    ]},
    "/v1/apps/search/shares": {"shares": [
        {"grantee": "*", "functions": ["embed"]}, {"grantee": "acme", "functions": []},
    ]},
    "/v1/shared": {"shared": [
        {"ref": "zoo:llm.chat", "owner": "zoo", "app": "llm", "function": "chat", "endpoint": ""},
    ]},
    "/v1/usage": {
        "lines": [{
            "day": "2026-11-20", "app": "search", "function": "embed", "version": "search.embed@v7", "state": "busy",
            "price": "cpu", "ppm": 500_000, "calls": 2, "ns": 5, "gpu_seconds": 1.23456, "cost": "0.01",
            "currency": "USD",
        }],
        "total": {"calls": 2, "ns": 5, "gpu_seconds": 1.23456, "cost": "0.01", "currency": "USD"},
    },
}  # fmt: skip
LISTS = {
    ("app", "list"): "/v1/apps",
    ("app", "history", "search"): "/v1/apps/search/history",
    ("container", "list"): "/v1/containers",
    ("key", "list"): "/v1/keys",
    ("key", "list", "--tenant", "acme"): "/v1/tenants/acme/keys",
    ("tenant", "list"): "/v1/tenants",
    ("quota", "tiers"): "/v1/tiers",
    ("app", "shares", "search"): "/v1/apps/search/shares",
    ("app", "shared"): "/v1/shared",
    ("usage",): "/v1/usage",
}


@pytest.fixture
def scripted(platform: ScriptedPlatform) -> ScriptedPlatform:
    for path, body in SCRIPT.items():
        platform.will("GET", path, answer(body))
    return platform


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_every_list_has_json(scripted: ScriptedPlatform, words: tuple[str, ...]) -> None:
    """What the platform answered."""
    body = SCRIPT[LISTS[words]]
    expected = body if words == ("usage",) else next(value for value in body.values() if isinstance(value, list))
    assert msgspec.json.decode(run(*words, "--json")) == expected


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        (("app", "list"), [["app", "function", "version", "needs", "containers", "deployed"],
                           ["search", "embed", "v7", "H100 or CPU", "2", "2h ago"],
                           ["old", "-", "-", "-", "0", "stopped"]]),
        (("app", "history", "search"), [["revision", "deployed", "by", "functions", "message"],
                                        ["2", "3h ago", "k1", "embed", "larger"], ["1", "1d ago", "k1", "embed"]]),
        (("container", "list"), [["container", "function", "state", "calls", "running", "age", "idle", "memory", "node",
                                  "slice", "sandbox"],
                                 ["ctr_1", "search.embed", "ready", "5", "1/4", "1m", "0s", "2.5 MB", "n1", "cpu-0",
                                  "bubblewrap"]]),
        (("key", "list"), [["id", "label", "scopes", "created", "expires"],
                             ["k1", "ci", "invoke, deploy", "3h ago", "in 1d"], ["k2", "invoke", "3h ago", "revoked"]]),
        (("tenant", "list"), [["tenant", "tier", "weight", "created", "state"],
                              ["acme", "paid", "1.5", "3h ago", "active"], ["zoo", "free", "1", "3h ago", "disabled"]]),
        (("quota", "tiers"), [["tier", "rank", "weight", "ceiling", "reserved", "limits", "from"],
                              ["free", "0", "1", "standard", "25%", "requests_per_s=10 concurrency=5", "configuration"],
                              ["paid", "1", "4", "interactive", "0%", "not limited", "registry"]]),
        (("app", "shares", "search"), [["tenant", "functions"], ["*", "embed"], ["acme", "all"]]),
        (("app", "shared"), [["function", "owner"], ["zoo:llm.chat", "zoo"]]),
        (("usage",), [["day", "function", "state", "price", "calls", "seconds", "cost"],
                      ["2026-11-20", "search.embed@v7", "busy", "cpu", "2", "1.235", "0.01 USD"],
                      ["total", "2", "1.235", "0.01 USD"]]),
    ],
    ids=str,
)  # fmt: skip
def test_every_list_is_a_table(scripted: ScriptedPlatform, words: tuple[str, ...], rows: list[list[str]]) -> None:
    """Columns are aligned; nothing is cut off where no terminal is."""
    lines = run(*words).splitlines()
    assert [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines] == rows


def test_an_empty_list_says_so(platform: ScriptedPlatform) -> None:
    """On stderr: stdout stays empty."""
    platform.will("GET", "/v1/containers", answer({"containers": []}))
    done = CliRunner().invoke(app, ["container", "list"])
    assert (done.stdout, done.stderr) == ("", "No containers: nothing burns while nobody calls.\n")
    assert msgspec.json.decode(run("container", "list", "--json")) == []


def test_usage_as_csv_and_of_a_period(scripted: ScriptedPlatform) -> None:
    """With every column."""
    lines = run("usage", "--from", "2026-11-01", "--to", "2026-12-01", "--csv").splitlines()
    assert lines[0].startswith("day,app,function,version,state,price,ppm,calls,ns,")
    assert lines[1] == "2026-11-20,search,embed,search.embed@v7,busy,cpu,500000,2,5,1.23456,0.01,USD"
    assert scripted.requests[0].query == "from=2026-11-01&to=2026-12-01"


def test_usage_of_parts_of_several_sizes_is_one_line(platform: ScriptedPlatform) -> None:
    """What a person could not tell apart is added up, exactly; as JSON each part stands for itself."""
    line = SCRIPT["/v1/usage"]["lines"][0]
    lines = [line, line | {"ppm": 250_000, "calls": 3, "cost": "0.000000000001"}, line | {"state": "idle", "calls": 0}]
    platform.will("GET", "/v1/usage", answer({"lines": lines, "total": SCRIPT["/v1/usage"]["total"]}))
    rows = [row.split() for row in run("usage").splitlines()[1:3]]
    assert rows == [
        ["2026-11-20", "search.embed@v7", "busy", "cpu", "5", "2.469", "0.010000000001", "USD"],
        ["2026-11-20", "search.embed@v7", "idle", "cpu", "0", "1.235", "0.01", "USD"],
    ]
    assert msgspec.json.decode(run("usage", "--json"))["lines"] == lines


def test_an_app_is_stopped(platform: ScriptedPlatform) -> None:
    """By its name."""
    platform.will("POST", "/v1/apps/search/stop", answer({"app": "search", "stopped": True}))
    assert run("app", "stop", "search") == "Stopped search.\n"
    assert msgspec.json.decode(run("app", "stop", "search", "--json"))["stopped"] is True


def test_logs_are_lines(platform: ScriptedPlatform) -> None:
    """The last hundred unless a time is given; as JSON on request."""
    lines = [{"at": 1_000.0, "stream": "stderr", "text": f"line {number}", "function": "embed"} for number in range(2)]
    body = [
        b"\n".join(msgspec.json.encode(line) for line in lines)[:30],
        b"\n".join(map(msgspec.json.encode, lines))[30:],
    ]
    platform.will("GET", "/v1/apps/search/logs", Answer(pieces=body))
    shown = run("logs", "search.embed").splitlines()
    assert [line.split("  ")[1:] for line in shown] == [["embed", "line 0"], ["embed", "line 1"]]
    assert [
        msgspec.json.decode(line) for line in run("logs", "search", "-f", "--since", "10m", "--json").splitlines()
    ] == lines
    assert [request.query for request in platform.requests] == ["function=embed&tail=100", "since=10m&follow=true"]


def test_quantities_are_short() -> None:
    """As people say them."""
    assert [size(count) for count in (12, 1_400, 2_500_000, 3e9)] == ["12 B", "1.4 kB", "2.5 MB", "3.0 GB"]
    assert [span(seconds) for seconds in (-1, 42, 200, 7_300, 500_000)] == ["0s", "42s", "3m", "2h", "6d"]
    assert [milliseconds(ms) for ms in (0.0, 0.0076, 0.84, 12.3, 2_310)] == [
        "0.0 ms",
        "7.6 us",
        "0.8 ms",
        "12 ms",
        "2.31 s",
    ]


def test_version() -> None:
    """Of the SDK and of Python."""
    assert run("version").startswith("pilotlight 0.")
    assert msgspec.json.decode(run("version", "--json")).keys() == {"pilotlight", "python"}


@pytest.mark.parametrize("words", [("app", "stop", "x"), ("app", "history", "x"), ("logs", "x")], ids=" ".join)
def test_an_app_that_there_is_not_is_answered_with_where_the_names_are(
    platform: ScriptedPlatform, words: tuple[str, ...]
) -> None:
    """Rather than with the word that a name is wrong."""
    refused = problem("not_found", "There is no app x.")
    for method, path in (("POST", "stop"), ("GET", "history"), ("GET", "logs")):
        platform.will(method, f"/v1/apps/x/{path}", refused)
    assert "'pilotlight app list' shows what is deployed." in CliRunner().invoke(app, words).stderr
