"""Host uids for containers: each running one has its own, so that the host never sees tenant code as root.

The kernel counts some things by uid, so two agents on one host must not use the same one: each claims a block of its
own, by a file lock that ends with the agent.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from pilotlight_runtime.sandbox.sandbox_errors import SandboxUnavailable, UidsExhausted

FIRST_UID = 231_072
"""Above `useradd` (60 000) and the first subordinate ranges of Docker and Podman (100 000, 165 536), so that no uid is
shared with a person or another runtime.
"""
BLOCK = 1_024
"""More than one node runs at once, so that a freed uid rests for a while."""
BLOCKS = 64
"""Agents per host: one, but for tests and development."""
LOCKS = Path("/run/pilotlight/uids")


class UidPool:
    """Numbers from `first` to `first + count - 1`; the one unused for longest is taken next.

    So what a dead container may have left under its uid (a file, an ending process) does not meet the next tenant.
    """

    def __init__(self, first: int = FIRST_UID, count: int = BLOCK, *, lock: int | None = None) -> None:
        """`lock` is a descriptor that holds the claim on this range; the pool closes it."""
        if first < 1 or count < 1:
            raise ValueError(f"a range of host uids needs first >= 1 and count >= 1, not {first} and {count}")
        self._range = range(first, first + count)
        self._fresh = iter(self._range)
        self._taken: set[int] = set()
        self._resting: dict[int, None] = {}  # in the order of release
        self._lock = lock

    @classmethod
    def claim(
        cls, folder: Path = LOCKS, *, first: int = FIRST_UID, count: int = BLOCK, blocks: int = BLOCKS
    ) -> UidPool:
        """The first of `blocks` ranges that no living agent has; raises `UidsExhausted` and `SandboxUnavailable`."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for start in range(first, first + blocks * count, count):
                lock = os.open(folder / str(start), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(lock)
                else:
                    return cls(start, count, lock=lock)
        except OSError as error:
            raise SandboxUnavailable(f"the agent needs a writable folder {folder}: {error}") from error
        raise UidsExhausted(f"{blocks} agents on this host have taken every range of host uids from {first}")

    def take(self) -> int:
        """A uid that no running container has; raises `UidsExhausted`."""
        uid = next(self._fresh, None)
        if uid is None:
            uid = next(iter(self._resting), None)
            if uid is None:
                raise UidsExhausted(
                    f"all {len(self._range)} host uids from {self._range.start} are in use: widen the range"
                )
            del self._resting[uid]
        self._taken.add(uid)
        return uid

    def release(self, uid: int) -> None:
        """Give `uid` back; raises `ValueError` if it was not taken."""
        if uid not in self._taken:
            raise ValueError(f"host uid {uid} is not in use")
        self._taken.remove(uid)
        self._resting[uid] = None

    def in_use(self) -> frozenset[int]:
        return frozenset(self._taken)

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
