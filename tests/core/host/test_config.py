"""Settings: flags win over variables, and what is wrong is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_core.host import config
from pilotlight_core.host.config import AgentSettings, BadSetting, parse
from pilotlight_supervisor.platform_plan import UpSettings


def test_flags_win_over_variables_and_variables_over_defaults() -> None:
    """Each setting has one name in three places."""
    env = {"PILOTLIGHT_CPU_SLOTS": "3", "PILOTLIGHT_BLANKS": "5", "PILOTLIGHT_SANDBOX": ""}

    settings = parse(AgentSettings, "", ["--cpu-slots", "7", "--state-dir", "/x", "--cache-bytes", "5"], env)

    assert (settings.cpu_slots, settings.blanks, settings.sandbox) == (7, 5, "bubblewrap")
    assert (settings.cache_bytes, AgentSettings().cache_bytes) == (5, 20 * 10**9)
    assert settings.state_dir == Path("/x")
    assert settings.default_blob_url == "file:///x/blobs"


@pytest.mark.parametrize(
    ("argv", "env", "says"),
    [
        (["--cpu-slots", "four"], {}, "--cpu-slots: expected int, got 'four'."),
        ([], {"PILOTLIGHT_BLANKS": "-1"}, "PILOTLIGHT_BLANKS: expected int >= 0, got '-1'."),
        (["--sandbox", "docker"], {}, "--sandbox (PILOTLIGHT_SANDBOX): expected one of bubblewrap, process"),
        (["--node", "a b"], {}, "--node: expected 1 to 63 letters, digits"),
        (["--wat", "1"], {}, "Unrecognized arguments: --wat 1"),
        (["--cpu-slots"], {}, "Argument --cpu-slots: expected one argument"),
        (["--cpu", "1"], {}, "Unrecognized arguments: --cpu 1"),
    ],
)
def test_what_is_wrong_is_named(argv: list[str], env: dict[str, str], says: str) -> None:
    """The message has the flag or variable, what was expected, and what came."""
    with pytest.raises(BadSetting) as caught:
        parse(AgentSettings, "", argv, env)

    assert says in str(caught.value)


@pytest.mark.parametrize(("argv", "env", "agent"), [
    ([], {}, True), (["--no-agent"], {}, False), ([], {"PILOTLIGHT_AGENT": "off"}, False),
    (["--agent"], {"PILOTLIGHT_AGENT": "0"}, True),
])  # fmt: skip
def test_switches_have_two_flags(argv: list[str], env: dict[str, str], agent: bool) -> None:
    """`--agent`, `--no-agent`, or a truth value in the variable."""
    assert parse(UpSettings, "", argv, env).agent is agent


@pytest.mark.parametrize(("argv", "env", "base"), [
    ([], {}, ()), (["--base", "a=/x", "--base", "b=/y"], {"PILOTLIGHT_BASE": "c=/z"}, ("a=/x", "b=/y")),
    ([], {"PILOTLIGHT_BASE": "a=/x,b=/y"}, ("a=/x", "b=/y")),
])  # fmt: skip
def test_a_list_is_a_flag_again_and_again(argv: list[str], env: dict[str, str], base: tuple[str, ...]) -> None:
    """Or a variable with commas."""
    assert parse(AgentSettings, "", argv, env).base == base


def test_a_truth_value_must_be_one() -> None:
    """Anything else is refused."""
    with pytest.raises(BadSetting, match="PILOTLIGHT_AGENT: expected true or false, got 'maybe'"):
        parse(UpSettings, "", [], {"PILOTLIGHT_AGENT": "maybe"})


def test_a_wrong_setting_ends_the_process_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """No traceback, exit code 2."""
    with pytest.raises(SystemExit) as caught:
        config.agent(["--cpu-slots", "999999"], {})

    assert caught.value.code == 2
    assert capsys.readouterr().err == "error: --cpu-slots: expected int <= 100000, got '999999'.\n"


def test_help_describes_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    """Each flag, its variable and its default are in --help."""
    with pytest.raises(SystemExit):
        config.agent(["--help"], {})

    text = capsys.readouterr().out
    for field in AgentSettings.__struct_fields__:
        assert f"--{field.replace('_', '-')}" in text
        assert f"PILOTLIGHT_{field.upper()}" in text
    assert "[bubblewrap]" in text


def test_each_process_reads_its_own() -> None:
    """The two readers that processes below the gateway use."""
    assert config.agent(["--node", "n1"], {}).node == "n1"
    assert config.controller([], {"PILOTLIGHT_REGION": "eu"}).region == "eu"
    assert config.controller(["--tiers-file", "/etc/tiers.toml"], {}).tiers == Path("/etc/tiers.toml")
    assert config.controller([], {}).tiers is None
