"""Text from elsewhere never steers the terminal that shows it."""

from __future__ import annotations

import ast
import unicodedata
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.cli import commands
from pilotlight.cli.printable import printable, printable_json, printable_line, unheard_text
from tests.sdk.cli.shell import invoke, on_terminal, run
from tests.sdk.scripted import ScriptedPlatform, answer, problem, result, stream

TITLE = "\x1b]0;owned\x07"
CLIPBOARD = "\x1b]52;c;cm0gLXJm\x07"
CLEAR = "\x9b2J\x1b[2J\x1bc"
BIDI = "\u202egnp.exe\u2066\u2069\u200f"
TAGS = "\U000e0041"
HOSTILE = f"a{TITLE}{CLIPBOARD}{CLEAR}{BIDI}{TAGS}z\r\x08\x00"
SHOWN = (
    r"a\x1b]0;owned\x07\x1b]52;c;cm0gLXJm\x07\x9b2J\x1b[2J\x1bc\u202egnp.exe\u2066\u2069\u200f\U000e0041z\x0d\x08\x00"
)
FINE = "Grüße, 世界, नमस्ते, שלום, 👩‍🚀 ok"


def steers(text: str) -> set[str]:
    """What of a text no terminal should get."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") and c not in "\t\n"} | {
        c
        for c in text
        if unicodedata.bidirectional(c) in ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")
    }


@given(st.text(st.characters()))
def test_no_text_steers(text: str) -> None:
    """Whatever it is; a line has no breaks either."""
    assert not steers(printable(text))
    assert not {"\t", "\n"} & set(printable_line(text))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_json_means_the_same(text: str) -> None:
    """It is escaped where JSON allows it, and reads as it did."""
    encoded = msgspec.json.encode({text: [text]}).decode()
    shown = printable_json(encoded)

    assert not steers(shown)
    assert msgspec.json.decode(shown) == {text: [text]}


def test_what_people_write_stays_as_it_is() -> None:
    """Scripts that run from the right, joined emoji, tabs and line feeds."""
    assert printable(f"{FINE}\t\n") == f"{FINE}\t\n"
    assert printable_line(FINE) == FINE
    assert (printable(HOSTILE), printable_line("a\nb\tc")) == (SHOWN, r"a\nb\tc")


def test_a_log_line_is_shown_escaped(platform: ScriptedPlatform) -> None:
    """On a terminal in its colour; with --json it is as it came."""
    line = {"at": 0.0, "stream": "stderr", "text": f"{HOSTILE}\nforged", "container": "c", "function": "f"}
    told = answer(line)
    platform.will("GET", "/v1/apps/shop/logs", told, told, told)

    assert f"{SHOWN}\\nforged" in run("logs", "shop")
    shown = on_terminal("logs", "shop")
    assert f"{SHOWN}\\nforged" in shown
    assert "\x1b]" not in shown
    assert msgspec.json.decode(run("logs", "shop", "--json"))["text"] == f"{HOSTILE}\nforged"


def test_an_error_and_its_traceback_are_shown_escaped(platform: ScriptedPlatform) -> None:
    """A stranger's input is in what the function raised."""
    raised = problem("function_raised", HOSTILE, traceback=f"Traceback\n  {HOSTILE}")
    platform.will("GET", "/v1/apps", problem("bad_input", HOSTILE), raised, raised)

    assert f"error: {SHOWN}\n" in invoke("app", "list").stderr
    shown = invoke("app", "list").stderr
    assert SHOWN in shown
    assert not steers(shown)
    assert "\x1b]" not in on_terminal("app", "list")


def test_a_table_is_shown_escaped(platform: ScriptedPlatform) -> None:
    """Each cell on its line, also on a terminal; the JSON says what there is."""
    listed = answer({"containers": [{"id": f"{HOSTILE}\nx", "state": "ready"}]})
    platform.will("GET", "/v1/containers", listed, listed, listed)

    assert f"{SHOWN}\\nx" in run("container", "list")
    assert "\x1b]" not in on_terminal("container", "list")
    assert msgspec.json.decode(run("container", "list", "--json"))[0]["id"] == f"{HOSTILE}\nx"


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_an_answer_is_json_without_what_steers(platform: ScriptedPlatform, options: tuple[str, ...]) -> None:
    """C1 controls and bidirectional ones may stand in JSON as they are: they are escaped, and mean the same."""
    platform.will("POST", "/v1/functions/shop.f/calls", stream(result(HOSTILE)))

    shown = run("call", "shop.f", *options)

    assert not steers(shown)
    told = msgspec.json.decode(shown)
    assert (told["output"] if options else told) == HOSTILE


def test_no_command_prints_past_it() -> None:
    """Commands note, or print texts, tables and JSON: there what steers is escaped."""
    for path in Path(str(commands.__file__)).parent.glob("*.py"):
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        assert not [call for call in calls if isinstance(call, ast.Name) and call.id == "print"], path


def test_gateways_are_named_or_counted() -> None:
    assert unheard_text(["gw-1", "gw-2"]) == "gw-1, gw-2"
    assert unheard_text(["a gateway"]) == "a gateway"
    assert unheard_text(["a gateway"] * 3) == "3 gateways"
