"""What functions name to connect to, and what tenants may have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.networks.network_targets import (
    MOST_TARGETS,
    NetworkTarget,
    Transport,
    given_targets,
    is_beyond,
    mark_given,
    name_fault,
    parse_target,
    targets_fault,
)
from tests.example_counts import examples

NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?(\.[a-z]([a-z0-9-]{0,8}[a-z])?){1,3}", fullmatch=True)
HOSTS = st.one_of(NAMES, NAMES.map("*.{}".format), st.just("*"))
TARGETS = st.builds(NetworkTarget, st.sampled_from(Transport), HOSTS, st.integers(1, 65_535))


@given(TARGETS)
@examples(100)
def test_a_target_is_read_as_it_is_written(target: NetworkTarget) -> None:
    """Each has one spelling."""
    assert parse_target(str(target)) == target


@given(TARGETS, TARGETS, NAMES)
@examples(200)
def test_what_covers_another_admits_all_of_it(wide: NetworkTarget, narrow: NetworkTarget, host: str) -> None:
    """So nobody is let out to what the tenant's list would not admit."""
    if wide.covers(narrow) and narrow.admits(narrow.transport, host, narrow.port):
        assert wide.admits(narrow.transport, host, narrow.port)


@pytest.mark.parametrize(
    ("pattern", "host", "admitted"),
    [
        ("api.example.com:443", "api.example.com", True),
        ("api.example.com:443", "a.api.example.com", False),
        ("api.example.com:443", "evil-api.example.com", False),
        ("*.example.com:443", "api.example.com", True),
        ("*.example.com:443", "a.b.example.com", True),
        ("*.example.com:443", "example.com", False),
        ("*.example.com:443", "evilexample.com", False),
        ("*.example.com:443", "example.com.evil.org", False),
        ("*:443", "anything.example.org", True),
        ("tcp://api.example.com:443", "api.example.com", False),
        ("api.example.com:8443", "api.example.com", False),
    ],
)
def test_hosts_of_patterns(pattern: str, host: str, admitted: bool) -> None:
    """At 443, with TLS."""
    assert parse_target(pattern).admits(Transport.TLS, host, 443) is admitted


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("api.example.com", "expected a host and a port"),
        ("api.example.com:", "expected a host and a port"),
        ("api.example.com:0", "expected a host and a port"),
        ("api.example.com:65536", "expected a host and a port"),
        ("api.example.com:0443", "expected a host and a port"),
        ("https://api.example.com:443", "TLS has no scheme here"),
        ("tls://api.example.com:443", "TLS has no scheme here"),
        ("API.example.com:443", "small letters"),
        ("api.example.com.:443", "the full name of a host"),
        ("localhost:443", "the full name of a host"),
        ("*.*.com:443", "the full name of a host"),
        ("api.*.com:443", "the full name of a host"),
        ("user@api.example.com:443", "the full name of a host"),
        ("api.example.com/path:443", "the full name of a host"),
        ("bücher.example.com:443", "xn--"),
        ("203.0.113.10:443", "not an address"),
        ("[2001:db8::1]:443", "not an address"),
        ("[::ffff:127.0.0.1]:443", "not an address"),
        ("2130706433:443", "not an address"),
        ("0x7f.1:443", "not an address"),
        ("0177.0.0.01:443", "not an address"),
        ("127.1:443", "not an address"),
        ("*.1:443", "not an address"),
        ("api.example.0x7f:443", "not an address"),
        (f"{'a' * 64}.example.com:443", "the full name of a host"),
        (f"{'a.' * 130}com:443", "the full name of a host"),
    ],
)
def test_what_is_no_target(text: str, why: str) -> None:
    """Each is refused with what is wrong."""
    assert why in targets_fault([text])


def test_addresses_that_only_some_resolvers_read() -> None:
    """Decimal, octal and hexadecimal forms of 127.0.0.1."""
    for form in ("2130706433", "0x7f000001", "017700000001", "127.1", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.0x1"):
        assert name_fault(form) == "name the host, not an address of it", form


def test_lists() -> None:
    """They are bounded, without repetition, and texts."""
    assert targets_fault([]) == ""
    assert "at most" in targets_fault([f"a{n}.example.com:443" for n in range(MOST_TARGETS + 1)])
    assert "twice" in targets_fault(["a.example.com:443"] * 2)
    assert "a list" in targets_fault("a.example.com:443")
    assert "a list" in targets_fault([443])


def test_what_is_given_is_asked_for_and_allowed() -> None:
    """In the order in which it was asked for."""
    asked = ("tcp://db.example.com:5432", "api.example.com:443", "example.com:443")
    assert given_targets(asked, ("*.example.com:443",)) == ("api.example.com:443",)
    assert given_targets(asked, ("*:443", "tcp://db.example.com:5432")) == asked
    assert given_targets(asked, ()) == ()
    assert given_targets(("*.example.com:443",), ("api.example.com:443",)) == ()


def test_what_is_given_is_marked() -> None:
    """By the places of what is asked for; all that is not allowed any more is beyond, and nothing else."""
    asked = tuple(f"h{n}.example.com:443" for n in range(MOST_TARGETS))
    assert mark_given(asked, ()) == 0
    assert mark_given(asked, asked) == 2**MOST_TARGETS - 1
    mark = mark_given(asked, (asked[0], asked[63]))
    assert mark == 1 + 2**63
    assert not is_beyond(mark, asked, ["*.example.com:443"])
    assert not is_beyond(mark, asked, [asked[0], asked[63]])
    assert is_beyond(mark, asked, [asked[0]])
    assert is_beyond(mark, asked, [])
    assert not is_beyond(0, asked, [])
    assert is_beyond(2**64, asked, ["*:443"])
