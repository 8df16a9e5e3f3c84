"""The nodes whose host has too little memory or too few cores for an ask: ever, or now."""

from __future__ import annotations

from typing import NamedTuple

from pilotlight_placement.asks.ask import GIB, Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Node


class ShortHosts(NamedTuple):
    """Nodes by rank. A node can be in both."""

    memory: set[int]
    cpu: set[int]

    @property
    def either(self) -> set[int]:
        return self.memory | self.cpu


def short_now(fleet: Fleet, ask: Ask) -> ShortHosts:
    """The nodes that have too little left to promise, as their containers are."""
    hosts = fleet.hosts
    return ShortHosts(
        memory=hosts.free_memory.below(ask.memory) if ask.memory else set(),
        cpu=hosts.free_cpu.below(ask.cpu) if ask.cpu else set(),
    )


def short_ever(fleet: Fleet, ask: Ask) -> ShortHosts:
    """The nodes that could not hold the ask if they were empty."""
    hosts = fleet.hosts
    return ShortHosts(memory=hosts.memory.below(ask.memory), cpu=hosts.cpu.below(ask.cpu))


def can_hold(node: Node, ask: Ask) -> bool:
    """Whether an empty node has the memory and the cores."""
    return node.host is None or (node.host.memory >= ask.memory and node.host.cpu_millis >= ask.cpu)


def memory_refusal(fleet: Fleet, rank: int, ask: Ask) -> str:
    """Why a node has too little memory for the ask, or ""."""
    hosts = fleet.hosts
    if not ask.memory or rank not in hosts.memory or (free := hosts.free_memory[rank]) >= ask.memory:
        return ""
    has, need = hosts.memory[rank] / GIB, f"{ask.memory / GIB:.1f} GiB are needed"
    if hosts.memory[rank] < ask.memory:
        return f"the host has {has:.1f} GiB of memory for containers, {need}"
    return f"of the host's {has:.1f} GiB of memory for containers {max(0, free) / GIB:.1f} GiB are left, {need}"


def cpu_refusal(fleet: Fleet, rank: int, ask: Ask) -> str:
    """Why a node has too few cores for the ask, or ""."""
    hosts = fleet.hosts
    if not ask.cpu or rank not in hosts.cpu or (free := hosts.free_cpu[rank]) >= ask.cpu:
        return ""
    has, need = hosts.cpu[rank] / 1000, f"{ask.cpu / 1000:g} are needed"
    if hosts.cpu[rank] < ask.cpu:
        return f"the host has {has:g} cores for containers, {need}"
    return f"of the host's {has:g} cores for containers {max(0, free) / 1000:g} are left, {need}"
