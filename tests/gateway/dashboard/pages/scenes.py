"""What routes answer, for tests of pages: as little as a page reads."""

from __future__ import annotations

from typing import Any

from pilotlight_gateway.dashboard.page_parts.blocks import Block, DataTable, Sentence


def answer_of(blocks: list[Block]) -> tuple[str, str]:
    """What a page says first, and how."""
    (found,) = [block for block in blocks if isinstance(block, Sentence) and block.id == "answer"]
    return found.text, found.tone


def table_of(blocks: list[Block], name: str) -> list[tuple[str, ...]]:
    """The rows of a table."""
    (found,) = [block for block in blocks if isinstance(block, DataTable) and block.id == name]
    return [tuple(cell.text for cell in row.cells) for row in found.rows]


def node(name: str = "n1", **more: Any) -> dict[str, Any]:
    usual = {
        "node": name, "status": "up", "state": "open", "zone": "a", "pool": "", "containers": 0, "slices": [],
        "notice": None, "draining": False, "clock_s": None, "expires_at": None, "guarantees": {},
    }  # fmt: skip
    return usual | more


def queue(why: str = "", **more: Any) -> dict[str, Any]:
    usual = {
        "version": "shop.hello@v1", "tenant": "acme", "function": "acme:shop.hello", "gateway": "g", "queued": 1,
        "oldest_ms": 5_000.0, "expected_ms": None, "running": 0, "slots": 0, "ready": 0, "starting": 0, "why": why,
        "sentence": "Because.", "flows": [], "flows_left": 0,
    }  # fmt: skip
    return usual | more


def queues(*listed: dict[str, Any], left: int = 0) -> dict[str, Any]:
    return {"queued": sum(one["queued"] for one in listed), "queues": list(listed), "left": left}


def slowdown(**more: Any) -> dict[str, Any]:
    usual = {
        "function": "acme:shop.hello", "version": "shop.hello@v1", "tenant": "acme", "priority": "standard",
        "slowdown": 15.7, "calls": 30, "neighbour": "bully",
    }  # fmt: skip
    return usual | more


def breaker(state: str = "open", **more: Any) -> dict[str, Any]:
    usual = {
        "version": "shop.hello@v1", "function": "acme:shop.hello", "tenant": "acme", "of": "version", "container": "",
        "caller": "", "state": state, "failures": 5, "retry_after_s": 4.0,
    }  # fmt: skip
    return usual | more


def container(**more: Any) -> dict[str, Any]:
    usual = {
        "id": "ctr_1", "tenant": "acme", "app": "shop", "function": "hello", "state": "ready", "node": "n1",
        "slice": "s", "running": 0, "slots": 4, "age_s": 5.0,
    }  # fmt: skip
    return usual | more


def device(name: str, kind: str, *segments: dict[str, Any]) -> dict[str, Any]:
    return {
        "node": "n1", "id": name, "type": kind, "mig": False, "draining": False, "withdrawn": "", "width": 8,
        "segments": list(segments),
    }  # fmt: skip
