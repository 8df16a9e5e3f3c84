"""What a client that runs for long connects with: whom it believes is read again when the file of authorities changes.

Connections keep what they began with; new ones go by the file as it is. What is there and cannot be used is logged
once, and the authorities of before count on. Every process may import it.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

from pilotlight_core.model.errors import BadInput

FileStamp = tuple[int, int, int]

log = structlog.get_logger(__name__)


class TrustedContext(ssl.SSLContext):
    """A shell around the context that was made last: event loops ask it for each new connection (`wrap_bio`)."""

    def __new__(cls, make: Callable[[], ssl.SSLContext], file: str) -> TrustedContext:  # noqa: ARG004 - of __init__
        return super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)

    def __init__(self, make: Callable[[], ssl.SSLContext], file: str) -> None:
        """`make` reads `file`, and is called again when that has changed.

        Raises:
            BadInput: as `make`.
        """
        self._make = make
        self._file = Path(file).expanduser()
        self._stamp = self._failed = file_stamp(self._file)
        self._protocols: list[str] | None = None
        self._current = make()

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        self.refresh()
        return self._current.wrap_bio(*args, **kwargs)

    def set_alpn_protocols(self, alpn_protocols: Any) -> None:
        self._protocols = list(alpn_protocols)
        self._current.set_alpn_protocols(self._protocols)

    def get_ca_certs(self, binary_form: bool = False) -> Any:
        return self._current.get_ca_certs(binary_form)

    def refresh(self) -> bool:
        """Read the file if it is not that in use; whether new connections believe others from now on."""
        if (stamp := file_stamp(self._file)) in (self._stamp, self._failed):
            return False
        try:
            made = self._make()
        except BadInput as error:
            log.error("the new authorities cannot be used", error=error.detail)
            self._failed = stamp
            return False
        if self._protocols is not None:
            made.set_alpn_protocols(self._protocols)
        self._current, self._stamp, self._failed = made, stamp, stamp
        log.info("other authorities are believed", file=str(self._file))
        return True


def file_stamp(path: Path) -> FileStamp:
    """What changes with a file, or with what its name leads to."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_mtime_ns, found.st_ino, found.st_size
