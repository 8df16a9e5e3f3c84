"""Answers that are written at once."""

from __future__ import annotations

from pilotlight_gateway.http.protocol.http_exchange import AnswerHeads

LINES = {200: b"HTTP/1.1 200 OK\r\n", 404: b"HTTP/1.1 404 Not Found\r\n"}


def test_an_answer_has_the_headers_of_its_second() -> None:
    """A server replaces the date each second; each status has its line, and the last answer says so."""
    heads = AnswerHeads(LINES)
    monday, tuesday = [(b"date", b"Mon")], [(b"date", b"Tue")]
    assert heads.whole(monday, 200, b"a: b", b"x", keep_alive=True) == b"HTTP/1.1 200 OK\r\ndate: Mon\r\na: b\r\n\r\nx"
    assert heads.whole(monday, 404, b"a: b", b"", keep_alive=True).startswith(LINES[404] + b"date: Mon\r\n")
    last = heads.whole(tuesday, 200, b"a: b", b"x", keep_alive=False)
    assert last == b"HTTP/1.1 200 OK\r\ndate: Tue\r\na: b\r\nconnection: close\r\n\r\nx"
