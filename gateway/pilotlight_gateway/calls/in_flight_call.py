"""A live call of this gateway, as its origin's driver sees it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping

from mypy_extensions import mypyc_attr

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.call_messages import BodyRef
from pilotlight_gateway.calls.attempts import Attempts
from pilotlight_gateway.calls.call_pipeline import CallPipeline
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.origin import Origin
from pilotlight_gateway.calls.prepared_call import PreparedCall

UNSENT = math.inf


@mypyc_attr(allow_interpreted_subclasses=True)
class InFlightCall(ABC):
    """A live call: its state machine, and what is held for it. Its caller implements the abstract methods."""

    def __init__(self, call: PreparedCall, shard: int, origin: Origin) -> None:
        self.call = call
        """As its caller made it; of a class with hooks `origin.call` is that of the stage that runs."""
        self.shard = shard
        """Of its function, or of the stage's."""
        self.origin = origin
        self.pipeline: CallPipeline | None = None
        """Of a class with hooks: the stages, of which `origin` is one; None: of nearly all functions."""
        self.heard_at = UNSENT
        """When it was sent, or its agent sent the last frame; UNSENT: its agent does not know its grant."""
        self.body: BodyRef | None = None
        self.place: BodyRef | None = None
        """Where its agent leaves an answer too large for the bus."""
        self.error: PilotlightError | None = None
        self.journal_bytes = 0
        """What is held of its journal."""
        self.value_bytes = 0
        """What is held of the value that the running stage got of the one before."""

    @property
    def attempts(self) -> list[Attempts]:
        """Those of the call; of a class with hooks those of each stage so far."""
        own, pipeline = self.origin.attempts, self.pipeline
        if pipeline is None:
            return [own]
        return pipeline.attempts if own in pipeline.attempts else [*pipeline.attempts, own]

    @abstractmethod
    def report_stage(self, name: str, ms: float, detail: Mapping[str, object]) -> None:
        """The call has entered a stage, `ms` after its request arrived; `detail` is of its agent's choosing."""

    @abstractmethod
    def relay_chunks(self, seq: int, data: tuple[bytes, ...]) -> None:
        """The next pieces of its stream, `seq` the number of the first.

        Raises:
            Unavailable: if the gateway holds too many bytes already, of all or of this tenant.
        """

    def take_chunks(self, seq: int, data: tuple[bytes, ...]) -> bool:  # noqa: ARG002 - for those that can
        """Send the next pieces of its stream on at once; False: none of them was, and `relay_chunks` has to."""
        return False

    def hold_journal(self, size: int) -> None:
        """Hold so many bytes of its journal.

        Raises:
            Unavailable: as `relay_chunks`; what was held before still is.
        """
        self.journal_bytes = size

    def hold_value(self, size: int) -> None:
        """Hold so many bytes of what one stage has given to the next, instead of those before.

        Raises:
            Unavailable: as `relay_chunk`; what was held before still is.
        """
        self.value_bytes = size

    @abstractmethod
    def finish(self, result: CallResult) -> None:
        """The call has succeeded."""

    @abstractmethod
    def fail(self, error: PilotlightError) -> None:
        """The call has failed."""
