"""What of a call a container may have in its caches from calls before: its adapter, and the beginning of its prompt.

A gateway cannot count tokens, so a prompt is compared by its text, or by its token ids as they were given: the digest
of each of its first blocks covers all before it, its caller's tenant and its adapter. Two calls with equal digests have
equal beginnings; what a container has of them is the engine's to know.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

BLOCK_BYTES = 512
"""Of a prompt as msgpack: some hundred tokens."""
BLOCKS_AT_MOST = 32
"""A prompt is compared by its first 16 KiB."""
DIGEST_BYTES = 8
NULL = b"\xc0"
"""None in msgpack."""


class CallAffinity(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where a call of an engine would find most of its work done."""

    adapter: str = ""
    """The name of its adapter; "": it wants none."""
    prefix: tuple[int, ...] = ()
    """The digests of its prompt's beginnings, the shortest first."""


class _PromptPart(msgspec.Struct, frozen=True):
    """Those arguments of `generate` that a prompt consists of."""

    prompt: str | None = None
    prompt_ids: msgspec.Raw = msgspec.Raw(NULL)
    messages: list[msgspec.Raw] | None = None
    adapter: str = ""
    tools: msgspec.Raw = msgspec.Raw(NULL)


_decoder = msgspec.msgpack.Decoder(_PromptPart)


def affinity_of(tenant: str, arguments: bytes) -> CallAffinity | None:
    """The affinity of a call by `tenant` with these arguments of `generate`, in msgpack; None: they are others."""
    try:
        part = _decoder.decode(arguments)
    except msgspec.MsgspecError:
        return None
    text = b"".join(_pieces(part))
    if not text and not part.adapter:
        return None
    running = hashlib.blake2b(f"{tenant}\0{part.adapter}\0".encode(), digest_size=DIGEST_BYTES)
    prefix = []
    for start in range(0, min(len(text), BLOCKS_AT_MOST * BLOCK_BYTES) - BLOCK_BYTES + 1, BLOCK_BYTES):
        running.update(text[start : start + BLOCK_BYTES])
        prefix.append(int.from_bytes(running.digest(), "little"))
    return CallAffinity(part.adapter, tuple(prefix))


def _pieces(part: _PromptPart) -> list[Any]:
    """What begins equally in equal prompts, without headers that count what follows."""
    if part.messages is not None:
        return [part.tools, *part.messages]
    if part.prompt is not None:
        return [part.prompt.encode()]
    ids = memoryview(part.prompt_ids)
    return [ids[{0xDC: 3, 0xDD: 5}.get(ids[0], 1) :]]
