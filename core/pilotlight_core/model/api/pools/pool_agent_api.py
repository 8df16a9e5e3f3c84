"""What the controller asks the supervisor of its machine: agents of pools, by lines of JSON over a socket."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from pilotlight_core.model.ids import NAME_PATTERN

POOL_SOCKET = "pool-agents.sock"
"""In the state folder."""
POOL_AGENT_NODE = "local-pool-{}"
"""The names of their nodes: each has a user on the bus from the start."""
MOST_POOL_AGENTS = 64

AgentName = Annotated[str, Meta(pattern=NAME_PATTERN)]
AgentText = Annotated[str, Meta(max_length=200)]


class AgentLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that runs, or is to."""

    launch: AgentName
    pool: AgentName
    node: AgentName
    zone: AgentName
    spot: bool = False
    fake_gpus: AgentText = ""
    cpu_slots: Annotated[int, Meta(ge=0, le=4096)] = 0
    is_ending: bool = False


class PoolAgentQuestion(msgspec.Struct, frozen=True, kw_only=True):
    verb: Literal["list", "launch", "terminate"]
    pool: AgentName
    launch: AgentLaunch | None = None
    """To launch."""
    id: AgentText = ""
    """Of the launch whose agent is to end."""


class PoolAgentAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The agents of the pool, or the one that was launched. `why` it was not: "full", or a sentence."""

    agents: tuple[AgentLaunch, ...] = ()
    why: str = ""
