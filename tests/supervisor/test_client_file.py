"""Which client file a platform writes: never that of another one that is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pilotlight_supervisor.client_file import choose_client_file, users_file

OURS, THEIRS = "http://127.0.0.1:8471", "http://127.0.0.1:8470"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


async def chosen(home: Path, content: object = None, *, answers: int = 200, own_key: str = "", named: str = "") -> Path:
    """The file that a platform writes where `content` is in the user's, and its own copy has `own_key`."""
    state = home.parent / "state"
    state.mkdir(exist_ok=True)
    if content is not None:
        (home / "client.json").write_text(json.dumps(content))
    if own_key:
        (state / "client.json").write_text(json.dumps({"url": "http://127.0.0.1:1", "api_key": own_key}))

    async def status(url: str) -> int:
        assert url == f"{THEIRS}/readyz"
        return answers

    return await choose_client_file(named, state, OURS, status)


def test_the_users_file_is_where_the_sdk_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In $PILOTLIGHT_HOME, else in the home folder."""
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    assert users_file() == tmp_path / "client.json"
    monkeypatch.delenv("PILOTLIGHT_HOME")
    assert users_file() == Path.home() / ".pilotlight" / "client.json"


async def test_the_file_of_a_platform_that_answers_is_left_alone(home: Path) -> None:
    """The second platform has its copy only, ready or not the first one may be."""
    copy = home.parent / "state" / "client.json"
    theirs = {"url": THEIRS, "api_key": "k"}
    assert await chosen(home, theirs) == copy
    assert await chosen(home, theirs, answers=503) == copy
    assert await chosen(home, theirs, own_key="mine") == copy


async def test_the_file_of_a_platform_elsewhere_is_left_alone(home: Path) -> None:
    """It is not asked whether it is there: its key may be the only one."""
    remote = {"url": "https://gpu.example.com", "api_key": "k"}
    assert await chosen(home, remote) == home.parent / "state" / "client.json"


@pytest.mark.parametrize(
    ("content", "own_key"),
    [(None, ""), ("nonsense", ""), ({"url": OURS, "api_key": "k"}, ""), ({"url": THEIRS, "api_key": "k"}, "k")],
)
async def test_an_own_one_is_written_anew(home: Path, content: object, own_key: str) -> None:
    """None yet, a garbled one, one that has this address, or this platform's key and a former address."""
    assert await chosen(home, content, own_key=own_key) == home / "client.json"


async def test_what_is_gone_gives_way(home: Path) -> None:
    """Nobody answers at the address, and whoever did has a copy of the key."""
    assert await chosen(home, {"url": THEIRS, "api_key": "k"}, answers=0) == home / "client.json"


async def test_a_named_file_is_the_file(home: Path, tmp_path: Path) -> None:
    """Whoever names it means it."""
    named = str(tmp_path / "x.json")
    assert await chosen(home, {"url": THEIRS, "api_key": "k"}, named=named) == tmp_path / "x.json"
