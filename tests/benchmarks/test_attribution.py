"""Samples of running processes become microseconds by function and room."""

from __future__ import annotations

from benchmarks.attribution import SHOWN, by_room, innermost, rows, shares

RAW = [
    "main (/pilotlight_gateway/__main__.py:40);run (/x/uvloop/loop.py:1) 2",
    "main (/pilotlight_gateway/__main__.py:40);grants (/pilotlight_gateway/home/home.py:9);min (x) 5",
    "grants (/pilotlight_gateway/home/home.py:12) 1",
    "thread (/x/threading.py:3) 2",
]


def test_a_sample_counts_for_its_innermost_function_of_ours() -> None:
    """Whatever line it was at, and whatever of others it had called."""
    outside = "outside (loop, server, libraries)"
    assert innermost(RAW) == {"__main__:main": 2, "home/home:grants": 6, outside: 2}


def test_the_parts_add_up_to_the_whole() -> None:
    """By function, by room, and in the rows of the table."""
    parts = shares(innermost(RAW), 50.0)
    assert parts["home/home:grants"] == 30.0
    assert sum(parts.values()) == sum(by_room(parts).values()) == sum(us for _, us in rows(parts)) == 50.0
    many = shares({f"home/home:f{n}": 1 for n in range(SHOWN + 8)}, 100.0)
    assert rows(many)[-1] == ("8 others", 40.0)
    assert by_room(many) == {"home": 100.0}
