"""What agents ask gateways: links to files of versions, values of secrets, and calls that functions make; and what
gateways ask agents: to lock requirements at a deploy, since nodes have the base environments and the way to the index.

Nothing of a value is in clear on the bus: the answer is sealed to a key that the agent makes for one load.

A call that runs makes another one: its agent asks its origin, which makes the nested call in its name. The agent says
which call of which container asks; the origin believes that only of a grant that it sent there itself. Tenant, key,
deadline and depth are the origin's own knowledge and travel in no message.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from pilotlight_core.model.bounded import Bytes, Count, Rising, ShortText
from pilotlight_core.model.messages.call_messages import BodyRef
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.packages.package_locks import PackageLock
from pilotlight_core.model.supply.inventories import MOST_DESCRIBED, BaseInventory, PackageFact

ResolverWords = Annotated[str, Meta(max_length=16_384)]
MOST_ASKED = 256
"""Tenants that one question asks about."""
MOST_AT_ONCE = 64
"""Nested calls of one call that have not ended."""
MOST_DEPTH = 4
"""Calls between a nested call and the one from outside, itself included."""
MOST_OF_TREE = 256
"""Nested calls below one call from outside that have not ended."""
MOST_IN_ALL = 10_000
"""Nested calls below one call from outside, ended ones too."""
MOST_REQUEST = 10 * 10**6 + 64 * 1024
"""Bytes of a nested call's request: 10 MB of payload and its framing, as of calls from outside."""
INLINE_REQUEST = 256 * 1024
"""A larger one is left at the origin's internal listener, since messages share one connection."""


class BlobWanted(Message, frozen=True, kw_only=True):
    """A container that is bound on the agent's node needs a blob of its version."""

    container: str
    sha256: str
    public_key: Annotated[bytes, Meta(max_length=32)] = b""
    """X25519, for the key of a sealed blob, for this answer alone; "" of agents of before there were such blobs."""


class BlobLink(Message, frozen=True, kw_only=True):
    """Where the blob can be read for a few minutes, or why it cannot be."""

    url: str = ""
    """"" for a sealed blob: the store gives no links, and has it under `name`."""
    reason: str = ""
    """"not_bound": no such container is bound there; "not_its": its version does not have this blob; "missing",
    "down": the store says so; "no_links": the store gives none; "sealed": the agent sent no key; "busy": ask later."""
    name: str = ""
    """Under which a sealed blob is stored."""
    sealed_key: bytes = b""
    """A `sealed_boxes` box for that key (`blob_key_context`): what opens this blob and no other."""


def blob_key_context(container: str, sha256: str) -> str:
    """What a blob's key is given for."""
    return f"blob {sha256} for {container}"


class ErasedWanted(Message, frozen=True, kw_only=True):
    """Which of these tenants, whose files a node keeps, were erased?"""

    tenants: Annotated[tuple[ShortText, ...], Meta(max_length=MOST_ASKED)]


class ErasedTenants(Message, frozen=True, kw_only=True):
    """Those that were."""

    tenants: tuple[str, ...] = ()


class StorageWanted(Message, frozen=True, kw_only=True):
    """An agent has something stored, or read: usage, log lines and the cut of its GPUs, or what all have in common.

    Agents ask no stream themselves: a server of the bus answers with its own rights wherever who asks has said.
    """

    subject: Annotated[str, Meta(max_length=512)]
    """Of a stream."""
    data: bytes | None = None
    """None: the last message there is wanted."""
    id: Annotated[str, Meta(max_length=1_024)] = ""
    """By which the stream knows what it has already."""


class StorageAnswer(Message, frozen=True, kw_only=True):
    """What came of it."""

    seq: int = 0
    """Of the message; 0: there is none."""
    data: bytes = b""
    at: float = 0.0
    reason: str = ""
    """Why not: "busy" and "down": ask again; "not_its": it is not for that node; else what the stream says."""


class AskNested(Message, frozen=True, kw_only=True):
    """A call that runs asks for another one. Repeated until an answer arrives."""

    parent: ShortText
    """The id of the call that asks."""
    grant_number: Rising = 0
    container: ShortText
    number: Count
    """Of the parent's grant: the same number is the same nested call."""
    function: ShortText
    """The ref, as it was written in the function."""
    of_app: bool = False
    """Whether the function belongs to the parent's own app, however that is called here."""
    request: bytes = b""
    """As the body of a call over HTTP, in msgpack."""
    request_size: Bytes = 0
    """Not 0: it is too large for the bus, and `request` is empty."""
    again: bool = False
    """It was asked before, and `request` is left out."""


class NestedAnswer(Message, frozen=True, kw_only=True):
    """One of its fields says how the nested call ended, or what the agent is to do first."""

    body: bytes = b""
    """As that of a call over HTTP, in msgpack."""
    large: BodyRef | None = None
    """Where a body too large for the bus can be read once."""
    problem: bytes = b""
    """As that of a failed call over HTTP, in JSON."""
    place: BodyRef | None = None
    """Where the request is to be left, before it is asked again."""
    is_unknown: bool = False
    """It was not asked before: the request is wanted."""


class LeaveNested(Message, frozen=True, kw_only=True):
    """The parent wants no answer any more."""

    parent: ShortText
    grant_number: Rising = 0
    number: Count


class SecretsWanted(Message, frozen=True, kw_only=True):
    """A container that is bound on the agent's node needs the secrets of its version."""

    container: ShortText
    public_key: Annotated[bytes, Meta(min_length=32, max_length=32)]
    """X25519, for this answer alone."""


class SecretsAnswer(Message, frozen=True, kw_only=True):
    """The values, or why there are none."""

    sealed: bytes = b""
    """A `sealed_boxes` box for that key with the container's id as its context: msgpack of name -> value."""
    revision: str = ""
    """Names these values, as containers report it: another one, once one of them is set anew."""
    reason: str = ""
    """"not_bound": no such container is bound there; "missing": the tenant has none of `missing`; "lost": those of
    `missing` were sealed under a key that is gone; "other_key": this gateway has another key than its platform;
    "down": the key or the bus does not answer; "busy": ask later."""
    missing: tuple[str, ...] = ()


class LockPackages(Message, frozen=True, kw_only=True):
    """Lock a tenant's requirements over one of the node's base environments; the answer goes to `gateway`."""

    question: str
    """Unique; the answer names it."""
    gateway: str
    tenant: str
    base: str
    requirements: tuple[str, ...]
    known_base: str = ""
    """The digest of the base environment, and the interpreter's tag, of a lock of the same requirements that there is.
    """
    known_python: str = ""


class PackagesLocked(Message, frozen=True, kw_only=True):
    """The lock, or why there is none."""

    question: ShortText
    lock: PackageLock | None = None
    reason: Literal["", "unchanged", "refused", "busy", "failed"] = ""
    """"unchanged": the known lock is for this base; "refused": the deployer can mend it; "busy", "failed": another node
    may do it."""
    words: ResolverWords = ""
    """The resolver's."""


class DescribePackages(Message, frozen=True, kw_only=True):
    """Say what packages a base environment of the node has, and those of a lock over it; the answer goes to `gateway`.

    To agents that have the feature `inventory`.
    """

    question: str
    """Unique; the answer names it."""
    gateway: str
    tenant: str
    base: str
    lock: PackageLock | None = None
    """None: nothing is asked of a lock, which has to be built to be known."""


class PackagesDescribed(Message, frozen=True, kw_only=True):
    """What there is, or why that cannot be said."""

    question: ShortText
    base: BaseInventory | None = None
    locked: Annotated[tuple[PackageFact, ...], Meta(max_length=MOST_DESCRIBED)] = ()
    words: ResolverWords = ""
