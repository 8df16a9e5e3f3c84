"""Which adapters are resident."""

from __future__ import annotations

from pathlib import Path

from pilotlight_engine.engine_port import AdapterSource
from pilotlight_engine.scheduling.adapter_shelf import AdapterShelf, KnownAdapter


def _adapter(name: str, size: int = 10, digest: str = "") -> KnownAdapter:
    source = AdapterSource(name=name, folder=Path(name))
    return KnownAdapter(source=source, digest=digest or name, bytes=size)


def _shelf(*names: str, capacity: int = 20) -> tuple[AdapterShelf[str], list[str]]:
    loads: list[str] = []

    def load(adapter: KnownAdapter) -> str:
        loads.append(adapter.source.name)
        return adapter.digest

    shelf = AdapterShelf(capacity, load)
    for name in names:
        shelf.add(_adapter(name))
    return shelf, loads


def test_an_adapter_is_loaded_when_it_is_first_needed() -> None:
    """And once."""
    shelf, loads = _shelf("a", "b")
    assert loads == []

    assert shelf.get("a", ()) == shelf.get("a", ()) == "a"
    assert loads == ["a"]


def test_the_longest_unused_goes_for_another() -> None:
    """By bytes; what is in use stays."""
    shelf, loads = _shelf("a", "b", "c")
    for name in ("a", "b", "a", "c"):
        shelf.get(name, ())
    assert shelf.resident() == ("a", "c")

    shelf.get("b", ("a", "b"))
    assert shelf.resident() == ("a", "b")
    assert loads == ["a", "b", "c", "b"]


def test_what_is_in_use_leaves_room_or_not() -> None:
    """One alone has room whatever its size."""
    shelf, _ = _shelf("a", "b", "c")
    shelf.add(_adapter("large", 100))

    assert shelf.can_hold("b", {"a"})
    assert not shelf.can_hold("c", {"a", "b"})
    assert shelf.can_hold("a", {"a", "b"})
    assert shelf.can_hold("large", ())
    assert shelf.can_hold("large", {"large"})
    assert not shelf.can_hold("large", {"a"})


def test_a_forgotten_one_stays_while_it_is_in_use() -> None:
    """Nobody can name it any more."""
    shelf, _ = _shelf("a")
    shelf.get("a", ())
    shelf.forget("a")
    shelf.release_unused({"a"})
    assert (shelf.names(), shelf.resident()) == ((), ("a",))
    assert shelf.get("a", {"a"}) == "a"

    shelf.release_unused(())
    assert (shelf.find("a"), shelf.resident()) == (None, ())


def test_other_content_is_loaded_anew() -> None:
    """The same content is not."""
    shelf, loads = _shelf("a")
    shelf.get("a", ())
    shelf.add(_adapter("a"))
    assert shelf.get("a", ()) == "a"

    shelf.add(_adapter("a", digest="new"))
    assert shelf.get("a", ()) == "new"
    assert loads == ["a", "a"]


def test_all_can_be_dropped() -> None:
    """They stay known."""
    shelf, _ = _shelf("a")
    shelf.get("a", ())
    shelf.drop_all()

    assert (shelf.names(), shelf.resident()) == (("a",), ())
