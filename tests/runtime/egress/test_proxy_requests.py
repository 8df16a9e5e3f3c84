"""What clients ask a proxy for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_runtime.egress.proxy_requests import END, ProxyRequest, RefusedRequest, parse_request, refusal
from tests.example_counts import examples


def head(*lines: str) -> bytes:
    return "\r\n".join(lines).encode("latin-1") + END


def refused(*lines: str) -> tuple[int, str]:
    with pytest.raises(RefusedRequest) as caught:
        parse_request(head(*lines))
    return caught.value.status, caught.value.reason


def test_a_tunnel() -> None:
    """With headers that nobody needs, and letters of any size."""
    asked = parse_request(head("CONNECT API.example.com:443 HTTP/1.1", "Host: other", "Proxy-Authorization: x"))
    assert asked == ProxyRequest("api.example.com", 443)
    assert asked.is_tunnel


def test_a_request_in_clear_is_written_for_its_server() -> None:
    """Without what is for the proxy; one of a connection."""
    asked = parse_request(
        head(
            "POST http://mirror.example.com/a?b HTTP/1.1", "Host: mirror.example.com", "Connection: keep-alive",
            "Proxy-Connection: keep-alive", "Upgrade: websocket", "Content-Length: 12", "X-Own: yes",
        )
    )  # fmt: skip
    assert (asked.host, asked.port, asked.body_bytes) == ("mirror.example.com", 80, 12)
    assert asked.forwarded == head(
        "POST /a?b HTTP/1.1", "Host: mirror.example.com", "Content-Length: 12", "X-Own: yes", "Connection: close"
    )


@pytest.mark.parametrize(
    ("url", "host", "line"),
    [
        ("http://m.example.com", "m.example.com", b"GET / HTTP/1.1"),
        ("http://m.example.com?q=1", "M.example.com", b"GET /?q=1 HTTP/1.1"),
        ("http://m.example.com:80/x", "m.example.com", b"GET /x HTTP/1.1"),
        ("http://m.example.com/x", "m.example.com:80", b"GET /x HTTP/1.1"),
        ("HTTP://m.example.com:8080/", "m.example.com:8080", b"GET / HTTP/1.1"),
    ],
)
def test_urls_in_clear(url: str, host: str, line: bytes) -> None:
    """Where nothing is named the port is 80."""
    assert parse_request(head(f"GET {url} HTTP/1.1", f"Host: {host}")).forwarded.startswith(line)


@pytest.mark.parametrize(
    "lines",
    [
        ("",),
        ("GET",),
        ("GET / HTTP/1.1", "Host: m.example.com"),
        ("GET  http://m.example.com/ HTTP/1.1", "Host: m.example.com"),
        ("GET http://m.example.com/ HTTP/2.0", "Host: m.example.com"),
        ("GET http://m.example.com/ HTTP/1.1",),
        ("GET http://m.example.com/ HTTP/1.1", "Host: evil.example.org"),
        ("GET http://m.example.com/ HTTP/1.1", "Host: m.example.com:81"),
        ("GET http://m.example.com/ HTTP/1.1", "Host: m.example.com", "Host: m.example.com"),
        ("GET http://user@m.example.com/ HTTP/1.1", "Host: m.example.com"),
        ("GET http://evil.org\\@m.example.com/ HTTP/1.1", "Host: m.example.com"),
        ("GET https://m.example.com/ HTTP/1.1", "Host: m.example.com"),
        ("GET ftp://m.example.com/ HTTP/1.1", "Host: m.example.com"),
        ("GET http:///path HTTP/1.1", "Host: "),
        ("GET http://m.example.com/ HTTP/1.1", "Host: m.example.com", " folded: x"),
        ("GET http://m.example.com/ HTTP/1.1", "Host: m.example.com", "Bad Name: x"),
        ("GET http://m.example.com/ HTTP/1.1", "Host : m.example.com"),
        ("GET http://m.example.com/ HTTP/1.1", "Host: m.example.com", "X: a\nHost: evil"),
        ("GET http://m.example.com/ HTTP/1.1", "Host: m.example.com", "X: a\rHost: evil"),
        ("GET http://m.example.com/ HTTP/1.1", "Host: m.example.com", "X: a\0"),
        ("POST http://m.example.com/ HTTP/1.1", "Host: m.example.com", "Content-Length: 1", "Content-Length: 2"),
        ("POST http://m.example.com/ HTTP/1.1", "Host: m.example.com", "Content-Length: +1"),
        ("POST http://m.example.com/ HTTP/1.1", "Host: m.example.com", "Content-Length: 0x10"),
        ("POST http://m.example.com/ HTTP/1.1", "Host: m.example.com", "Content-Length: 9999999999999"),
        ("CONNECT api.example.com HTTP/1.1",),
        ("CONNECT api.example.com:0 HTTP/1.1",),
        ("CONNECT api.example.com:99999 HTTP/1.1",),
        ("CONNECT api.example.com:443:443 HTTP/1.1",),
        ("CONNECT a:b@api.example.com:443 HTTP/1.1",),
        ("CONNECT http://api.example.com:443 HTTP/1.1",),
        ("CONNECT :443 HTTP/1.1",),
        (f"CONNECT {'a' * 5000}.com:443 HTTP/1.1",),
    ],
)
def test_what_is_no_request(lines: tuple[str, ...]) -> None:
    """Or could be read in two ways."""
    status, reason = refused(*lines)
    assert status == 400
    assert reason


def test_a_chunked_body_in_clear_is_refused() -> None:
    """Its end is where two readers disagree."""
    lines = ("POST http://m.example.com/ HTTP/1.1", "Host: m.example.com", "Content-Length: 1")
    assert refused(*lines, "Transfer-Encoding: chunked")[0] == 411


def test_blanks_around_a_value_are_none_of_it() -> None:
    """Of either kind; those within stay."""
    asked = parse_request(head("GET http://m.example.com/ HTTP/1.1", "Host: \t m.example.com\t ", "X:  a \t b \t"))
    assert asked.forwarded == head("GET / HTTP/1.1", "Host: m.example.com", "X: a \t b", "Connection: close")


@pytest.mark.parametrize("blank", [" ", "\t", " \t"])
def test_a_line_of_blanks_costs_no_more_than_others(blank: str) -> None:
    """As long as a head may be, and bad at its end: an expression that tried all ways would take hours."""
    line = "A:" + blank * (8000 // len(blank)) + "\x01"
    status, reason = refused("GET http://m.example.com/ HTTP/1.1", "Host: m.example.com", line)
    assert (status, reason) == (400, "a header cannot be read")


def test_an_answer_says_why_in_its_first_line() -> None:
    """And nothing of it can start a line of its own."""
    text = refusal(RefusedRequest(403, "no\r\nSet-Cookie: x"))
    assert text.startswith(b"HTTP/1.1 403 noSet-Cookie: x\r\nContent-Type: text/plain\r\n")
    assert text.endswith(b"Connection: close\r\n\r\nnoSet-Cookie: x\n")


@given(st.binary(max_size=300))
@examples(300)
def test_any_bytes_end_well(data: bytes) -> None:
    """With a request or a refusal."""
    for whole in (data + END, b"CONNECT " + data + b" HTTP/1.1" + END, b"GET http://" + data + END):
        try:
            answer = parse_request(whole).forwarded or END
        except RefusedRequest as caught:
            answer = refusal(caught)
        assert answer.count(END) == 1
