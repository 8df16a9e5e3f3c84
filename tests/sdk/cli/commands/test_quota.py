"""Commands about limits and tiers: what they send, and where a limit comes from."""

from __future__ import annotations

import msgspec
import pytest

from tests.sdk.cli.shell import cells, invoke, run
from tests.sdk.scripted import Answer, ScriptedPlatform, answer, problem

LIMITS = {
    "tenant": "acme", "tier": "free", "limits": {"concurrency": 3},
    "functions": {"zoo:llm.chat": {"requests_per_s": 2.5}},
    "effective": {"requests_per_s": 10.0, "concurrency": 3},
}  # fmt: skip


def test_a_quota_without_limits_is_refused() -> None:
    """It would remove the tenant's limits, which `clear` does."""
    done = invoke("quota", "set", "acme")

    assert done.exit_code == 2
    assert "quota clear" in done.stderr


def test_a_quota_of_an_unknown_function_is_an_error_with_advice(platform: ScriptedPlatform) -> None:
    """The option --ahead accepts a function that is deployed later."""
    path = "/v1/tenants/acme/limits/zoo:llm.chat"
    platform.will(
        "PUT", path, problem("unknown_function", "There is no function zoo:llm.chat."), answer({"function": "f"})
    )
    words = ["quota", "set", "acme", "burst=3", "--function", "zoo:llm.chat"]

    assert "If it is deployed later, add --ahead." in invoke(*words).stderr
    assert invoke(*words, "--ahead").exit_code == 0
    assert [request.query for request in platform.requests] == ["", "ahead=true"]


def test_a_quota_is_shown_with_its_origin(platform: ScriptedPlatform) -> None:
    """A limit comes from the tier, from the tenant, or from a single function."""
    platform.will("GET", "/v1/tenants/acme/limits", answer(LIMITS))

    assert cells(run("quota", "show", "acme")) == [
        ["calls", "limit", "value", "from"],
        ["all calls", "requests_per_s", "10", "tier free"],
        ["all calls", "concurrency", "3", "set for it"],
        ["zoo:llm.chat", "requests_per_s", "2.5", "set for it"],
    ]
    assert msgspec.json.decode(run("quota", "show", "acme", "--json")) == LIMITS


def test_a_quota_is_set_and_cleared(platform: ScriptedPlatform) -> None:
    """Limits are for all calls, or for those to one function."""
    one = {"tenant": "acme", "function": "zoo:llm.chat", "limits": {"requests_per_s": 2.5}, "effective": {}}
    platform.will("PUT", "/v1/tenants/acme/limits", answer(LIMITS))
    platform.will("PUT", "/v1/tenants/acme/limits/zoo:llm.chat", answer(one))
    platform.will("DELETE", "/v1/tenants/acme/limits", Answer(status=204))
    platform.will("DELETE", "/v1/tenants/acme/limits/zoo:llm.chat", Answer(status=204))
    function = ("--function", "zoo:llm.chat")

    assert run("quota", "set", "acme", "concurrency=3") == "all calls of acme: concurrency=3\n"
    assert run("quota", "set", "acme", "requests_per_s=2.5", *function).endswith("zoo:llm.chat: requests_per_s=2.5\n")
    assert [request.json for request in platform.requests] == [{"concurrency": 3}, {"requests_per_s": 2.5}]
    assert run("quota", "clear", "acme").endswith("for acme.\n")
    assert run("quota", "clear", "acme", *function).endswith("to zoo:llm.chat.\n")
    assert msgspec.json.decode(run("quota", "set", "acme", "concurrency=3", "--json")) == LIMITS


def test_a_guarantee_is_set_beside_what_is_set_already(platform: ScriptedPlatform) -> None:
    """In percent, of a tenant or of each tenant of a tier; with other limits it replaces what was set."""
    tier = {"name": "gold", "rank": 5, "weight": 2.0, "priority_ceiling": "batch", "reserved_share": 0.1,
            "limits": {"concurrency": 4}, "source": "registry"}  # fmt: skip
    shared = LIMITS | {"limits": {"concurrency": 3, "guarantee": 0.2, "borrow": 0.5}}
    platform.will("GET", "/v1/tenants/acme/limits", answer(LIMITS))
    platform.will("PUT", "/v1/tenants/acme/limits", answer(shared))
    platform.will("GET", "/v1/tiers", answer({"tiers": [tier]}))
    platform.will("PUT", "/v1/tiers/gold", answer(tier | {"limits": {"concurrency": 4, "guarantee": 0.075}}))

    shown = run("quota", "set", "acme", "--guarantee", "20%", "--borrow", "0.5")
    assert shown == "all calls of acme: concurrency=3 guarantee=20% borrow=50%\n"
    assert platform.requests[-1].json == {"concurrency": 3, "guarantee": 0.2, "borrow": 0.5}
    run("quota", "set", "acme", "burst=2", "--guarantee", "20%")
    assert platform.requests[-1].json == {"burst": 2, "guarantee": 0.2}
    shown = run("quota", "set", "--tier", "gold", "--guarantee", "7.5%")
    assert shown == "each tenant of the tier gold: concurrency=4 guarantee=7.5%\n"
    assert platform.requests[-1].json == {
        "rank": 5, "weight": 2.0, "priority_ceiling": "batch", "reserved_share": 0.1,
        "limits": {"concurrency": 4, "guarantee": 0.075},
    }  # fmt: skip
    assert msgspec.json.decode(run("quota", "set", "--tier", "gold", "--borrow", "1%", "--json"))["name"] == "gold"


@pytest.mark.parametrize(
    ("words", "about"),
    [
        (("acme", "--guarantee", "120%"), "at most 100%"),
        (("acme", "--guarantee", "much"), "--guarantee 'much'"),
        (("acme", "--borrow", "5%", "--function", "llm.chat"), "not of its calls"),
        (("acme", "borrow=0.5", "--borrow", "5%"), "borrow is given twice"),
        (("acme", "--tier", "gold", "--guarantee", "5%"), "set-tier"),
        (("--tier", "gold"), "set-tier"),
        (("--guarantee", "5%"), "name a tenant"),
        (("--tier", "silver", "--guarantee", "5%"), "no tier silver"),
    ],
)
def test_a_guarantee_that_says_nothing_is_refused(
    platform: ScriptedPlatform, words: tuple[str, ...], about: str
) -> None:
    """Before anything is asked for."""
    platform.will("GET", "/v1/tiers", answer({"tiers": []}))

    done = invoke("quota", "set", *words)

    assert done.exit_code == 2
    assert about in " ".join(done.stderr.replace("\u2502", " ").split())


def test_a_tier_is_set_and_dropped(platform: ScriptedPlatform) -> None:
    """A tier has fields and, with a prefix, limits."""
    tier = {"name": "gold", "rank": 5, "weight": 2.0, "priority_ceiling": "batch", "reserved_share": 0.1,
            "limits": {"concurrency": 4}, "source": "registry"}  # fmt: skip
    platform.will("PUT", "/v1/tiers/gold", answer(tier))
    platform.will("DELETE", "/v1/tiers/gold", Answer(status=204))

    shown = run("quota", "set-tier", "gold", "rank=5", "priority_ceiling=batch", "limits.concurrency=4")

    assert cells(shown)[1] == ["gold", "5", "2", "batch", "10%", "concurrency=4", "registry"]
    assert platform.requests[0].json == {"rank": 5, "priority_ceiling": "batch", "limits": {"concurrency": 4}}
    assert msgspec.json.decode(run("quota", "set-tier", "gold", "--json")) == tier
    assert run("quota", "drop-tier", "gold") == "Dropped gold.\n"


TIERS = [
    {"name": "free", "rank": 0, "weight": 1.0, "priority_ceiling": "standard", "reserved_share": 0.25,
     "limits": {"requests_per_s": 10.0, "concurrency": 5}, "source": "configuration"},
    {"name": "paid", "rank": 1, "weight": 4.0, "priority_ceiling": "interactive", "reserved_share": 0.0,
     "limits": {}, "source": "registry"},
]  # fmt: skip


def test_tiers_are_listed(platform: ScriptedPlatform) -> None:
    """Each tier is listed with its limits and its source."""
    platform.will("GET", "/v1/tiers", answer({"tiers": TIERS}))
    assert cells(run("quota", "tiers")) == [
        ["tier", "rank", "weight", "ceiling", "reserved", "limits", "from"],
        ["free", "0", "1", "standard", "25%", "requests_per_s=10 concurrency=5", "configuration"],
        ["paid", "1", "4", "interactive", "0%", "not limited", "registry"],
    ]
    assert msgspec.json.decode(run("quota", "tiers", "--json")) == TIERS


def test_a_wrong_limit_is_an_error_with_advice(platform: ScriptedPlatform) -> None:
    """The platform names the limit, and the command line the syntax."""
    platform.will("PUT", "/v1/tenants/acme/limits", problem("bad_input", "There is no limit 'speed'."))
    done = invoke("quota", "set", "acme", "speed=3")
    assert done.exit_code == 1
    assert done.stderr.splitlines()[0] == "error: There is no limit 'speed'."
    assert "Give limits as name=value, such as requests_per_s=50" in done.stderr
