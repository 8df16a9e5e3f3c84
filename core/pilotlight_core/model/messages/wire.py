"""The closed union of all messages, and its encoding."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotlight_core.model.messages.agent_questions import (
    AskNested,
    BlobLink,
    BlobWanted,
    DescribePackages,
    ErasedTenants,
    ErasedWanted,
    LeaveNested,
    LockPackages,
    NestedAnswer,
    PackagesDescribed,
    PackagesLocked,
    SecretsAnswer,
    SecretsWanted,
    StorageAnswer,
    StorageWanted,
)
from pilotlight_core.model.messages.bindings import Bound, Unbound
from pilotlight_core.model.messages.call_messages import (
    Cancel,
    Chunk,
    ChunkGroup,
    Ended,
    Reconcile,
    Refused,
    Run,
    Started,
    StreamCheckpoint,
    Window,
)
from pilotlight_core.model.messages.controller_questions import (
    ContainerStopReply,
    ExplainPlacement,
    PlacementReply,
    StopContainer,
)
from pilotlight_core.model.messages.demand import Demand, Demands
from pilotlight_core.model.messages.device_commands import Cut, SwitchMig
from pilotlight_core.model.messages.job_messages import AskJob, JobPlace, JobsStored, PlannedStarts
from pilotlight_core.model.messages.limiting import Holdings, HoldingsWanted, LimitAnswers, ToLimitHome
from pilotlight_core.model.messages.link_messages import LinkOffer, LinkSwitch
from pilotlight_core.model.messages.logs import ComparedCalls, LogBatch, PlatformEvent
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.node_messages import (
    Bind,
    CommandReply,
    Credit,
    Drain,
    Keep,
    KeepBlanks,
    NodeRenewal,
    NodeReport,
    Park,
    Prefetch,
    RenewNode,
    Shortage,
    Shortages,
    Stop,
    Unpark,
)
from pilotlight_core.model.messages.ran import Ran
from pilotlight_core.model.messages.scheduling import (
    AskCall,
    AskEvents,
    AskKept,
    AskTallies,
    Breakers,
    CallReply,
    CreditsWanted,
    GatewayLoad,
    KeptTold,
    StreamEvents,
    TalliesTold,
    ToHome,
    ToOrigin,
    TraceBatch,
)
from pilotlight_core.model.messages.usage import UsageBatch

MESSAGE = (
    Run | Cancel | Window | Reconcile | Refused | Started | Chunk | Ended | Credit | NodeReport
    | Demand | Demands | Shortage | Bind | Drain | Stop | Keep | Park | Unpark | Cut | SwitchMig
    | CommandReply | UsageBatch | LogBatch
    | ToHome | ToOrigin | CreditsWanted | AskCall | CallReply | Breakers
    | JobsStored | AskJob | JobPlace | PlannedStarts
    | ExplainPlacement | PlacementReply | StopContainer | ContainerStopReply | Ran
    | KeepBlanks | Prefetch
    | Bound | Unbound | BlobWanted | BlobLink
    | ToLimitHome | LimitAnswers | Holdings | HoldingsWanted
    | LinkSwitch | LinkOffer | GatewayLoad | Shortages | RenewNode | NodeRenewal
    | AskNested | NestedAnswer | LeaveNested
    | SecretsWanted | SecretsAnswer
    | ErasedWanted | ErasedTenants
    | LockPackages | PackagesLocked | DescribePackages | PackagesDescribed
    | StreamCheckpoint | AskEvents | StreamEvents | ChunkGroup
    | TraceBatch | AskKept | KeptTold
    | AskTallies | TalliesTold
    | PlatformEvent
    | ComparedCalls
    | StorageWanted | StorageAnswer
)  # fmt: skip
_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(MESSAGE)
_encoder = msgspec.msgpack.Encoder()


def encode(message: Message) -> bytes:
    return _encoder.encode(message)


def decode(data: bytes) -> Any:
    """The message in `data`.

    Raises:
        msgspec.DecodeError: if it is none of the union.
    """
    return _decoder.decode(data)
