"""Plain clients of an engine function, in a process of their own, that note when which tokens came.

`python -m benchmarks.token_client URL STREAMS TOKENS FUNCTION`, with the key in PILOTLIGHT_API_KEY, opens that many
streams at once, each for that many tokens, and prints one JSON object. While they run it only keeps what it reads and
when: what the answers say is looked at when all have ended, so that it takes little of the processor that it shares.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, cast
from urllib.parse import urlsplit

import uvloop

PROMPT = 32
"""Tokens of each prompt, which no other stream has."""
WITHIN_S = 300.0

Arrival = tuple[float, int]
"""When so many tokens came, in seconds."""


class _Stream(asyncio.Protocol):
    """Sends one request and keeps what comes back, to the end of the connection."""

    def __init__(self, request: bytes) -> None:
        self.reads: list[tuple[float, bytes]] = []
        self.ended = asyncio.get_running_loop().create_future()
        self._request = request

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        self.reads.append((time.perf_counter(), data))

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set_result(exc)


class AnswerBody:
    """The plain bytes of an HTTP/1.1 answer with chunked encoding, as they come.

    Raises:
        ValueError: the answer is another one.
    """

    def __init__(self) -> None:
        self._raw = bytearray()
        self._has_head = False

    def take(self, data: bytes) -> bytes:
        """What these bytes complete."""
        self._raw += data
        if not self._has_head:
            head, found, rest = bytes(self._raw).partition(b"\r\n\r\n")
            if not found:
                return b""
            if b" 200 " not in head[:16] or b"transfer-encoding: chunked" not in head.lower():
                raise ValueError(bytes(self._raw).decode(errors="replace"))
            self._raw, self._has_head = bytearray(rest), True
        plain = b""
        while (end := self._raw.find(b"\r\n")) > 0:
            after = end + 2 + int(self._raw[:end], 16)
            if len(self._raw) < after + 2:
                break
            plain += self._raw[end + 2 : after]
            del self._raw[: after + 2]
        return plain


def token_arrivals(reads: Iterable[tuple[float, bytes]]) -> Iterator[Arrival]:
    """When which chunks of an answer were there, by how many tokens they have.

    Raises:
        ValueError: it is no stream, or it ended with an error.
    """
    body, text = AnswerBody(), b""
    for at, data in reads:
        *events, text = (text + body.take(data)).split(b"\n\n")
        for event in events:
            fields = dict(line.split(b": ", 1) for line in event.split(b"\n") if b": " in line)
            if fields.get(b"event") == b"error":
                raise ValueError(event.decode())
            if fields.get(b"event") == b"chunk" and (ids := json.loads(fields[b"data"])["value"]["token_ids"]):
                yield at, len(ids)


def main() -> None:
    """Run the streams, print what came."""
    url, streams, tokens, function = sys.argv[1:]
    gc.disable()
    reads, cpu_s = uvloop.run(_read_all(url, int(streams), int(tokens), function))
    print(json.dumps({"cpu_s": cpu_s, "streams": [list(token_arrivals(each)) for each in reads]}))


async def _read_all(
    url: str, streams: int, tokens: int, function: str
) -> tuple[list[list[tuple[float, bytes]]], float]:
    split, used, loop = urlsplit(url), time.process_time(), asyncio.get_running_loop()
    protocols = [_Stream(_request(split.netloc, function, number, tokens)) for number in range(streams)]
    async with asyncio.timeout(WITHIN_S):
        for protocol in protocols:
            await loop.create_connection(lambda own=protocol: own, split.hostname, split.port)
        await asyncio.gather(*(protocol.ended for protocol in protocols))
    return [protocol.reads for protocol in protocols], time.process_time() - used


def _request(host: str, function: str, number: int, tokens: int) -> bytes:
    prompt = [1 + (number + place * number) % 250 for place in range(PROMPT)]
    asked: dict[str, Any] = {"prompt_ids": prompt, "max_tokens": tokens, "ignore_eos": True, "seed": number}
    body = json.dumps({"method": "generate", "input": asked}).encode()
    lines = (
        f"POST /v1/functions/{function}/calls HTTP/1.1",
        f"Host: {host}",
        f"Authorization: Bearer {os.environ['PILOTLIGHT_API_KEY']}",
        "Accept: text/event-stream",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


if __name__ == "__main__":
    main()
