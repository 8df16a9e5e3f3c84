"""Commands about policies: what is said is what is sent, and a check has an exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pilotlight.cli.main import app
from tests.sdk.cli.supply_commands import POLICY, VERDICT
from tests.sdk.scripted import Answer, ScriptedPlatform, answer


def run(*words: str, given: str | None = None) -> Result:
    return CliRunner().invoke(app, ["policy", *words], input=given)


@pytest.fixture(autouse=True)
def _there(platform: ScriptedPlatform) -> None:
    for path in ("/v1/policy", "/v1/platform-policy"):
        platform.will("PUT", path, answer(POLICY))
        platform.will("DELETE", path, Answer(status=204))


def test_options_are_the_policys_fields(platform: ScriptedPlatform) -> None:
    """What is not named is not sent."""
    words = (
        "set", "--enforce", "--signed", "--base", "torch@0123456789", "--no-pickles", "--deny-package", "requests<2.32",
        "--deny-licence", "AGPL-*", "--allow-licence", "MIT", "--vulnerabilities", "high", "--ignore", "CVE-1=not used",
        "--data-days", "7",
    )  # fmt: skip
    assert "Revision 3" in run(*words).stdout
    run("set", "--platform")

    assert platform.requests[0].json == {
        "mode": "enforce", "signed": True, "bases": ["torch@0123456789"], "no_pickles": True,
        "deny_packages": ["requests<2.32"], "deny_licences": ["AGPL-*"], "allow_licences": ["MIT"],
        "vulnerabilities": "high", "ignore": [{"id": "CVE-1", "reason": "not used"}], "data_days": 7.0,
    }  # fmt: skip
    assert (platform.requests[1].path, platform.requests[1].json) == ("/v1/platform-policy", {"data_days": 0.0})


def test_a_policy_is_a_file_as_it_is_shown(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """Whole, or the part that is the policy; from stdin too."""
    (tmp_path / "policy.json").write_text(json.dumps(POLICY))
    run("set", "--file", str(tmp_path / "policy.json"))
    run("set", "--file", "-", given='{"signed": true}')

    assert [request.json for request in platform.requests] == [POLICY["policy"], {"signed": True}]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "--ignore", "CVE-1"), "expected ID=REASON"),
        (("set", "--deny-package", "a b"), "deny_packages: 'a b'"),
        (("set", "--file", "nowhere.json"), "cannot be read"),
        (("set", "--file", "-"), "is no policy"),
    ],
)
def test_what_cannot_be_meant_is_not_sent(platform: ScriptedPlatform, words: tuple[str, ...], said: str) -> None:
    """The option is named."""
    done = run(*words, given='{"no_cats": true}')
    assert done.exit_code != 0
    assert said in done.stderr
    assert platform.requests == []


@pytest.mark.parametrize(("allowed", "code"), [(True, 0), (False, 2)])
def test_a_check_says_why_and_whether_it_could_be_deployed(
    platform: ScriptedPlatform, allowed: bool, code: int
) -> None:
    """For people, and for scripts."""
    found: dict[str, Any] = VERDICT | {"allowed": allowed, "more": 2, "warnings": ["old data"]}
    platform.will("GET", "/v1/functions/hello.greet/verdict", answer(found))
    done = run("check", "hello.greet")

    assert done.exit_code == code
    assert "licence" in done.stdout
    assert "and 2 more" in done.stderr
    assert "warning: old data" in done.stderr
    assert run("check", "hello.greet", "--json").exit_code == code


def test_without_a_policy_nothing_is_looked_for(platform: ScriptedPlatform) -> None:
    """And to remove one says so."""
    platform.will("GET", "/v1/policy", answer({"policy": {}, "revision": 0, "changed_at": 0.0, "changed_by": ""}))
    assert "There is no policy" in run("show").stdout
    assert run("remove").stdout == "The policy is removed.\n"
