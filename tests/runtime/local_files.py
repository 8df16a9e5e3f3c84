"""Files of versions for agents under test, whose gateways know of no sealed blob."""

from __future__ import annotations

from pilotlight_core.host.blobs import BlobBackend
from pilotlight_core.model.messages.agent_questions import BlobLink
from pilotlight_core.model.messages.message import Message
from pilotlight_runtime.containers.files.version_files import BlobQuestions, StoredFiles


class NothingSealed:
    """A gateway that is asked for what is not there."""

    async def request(self, subject: str, message: Message, timeout: float) -> object:
        return BlobLink(reason="missing")


def stored_files(blobs: BlobBackend) -> StoredFiles:
    """From a store in clear."""
    return StoredFiles(blobs, BlobQuestions(NothingSealed(), region="local", node="n1"))
