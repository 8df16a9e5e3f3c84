"""Host uids for containers: each running one has its own, so that the host never sees tenant code as root."""

from __future__ import annotations

from pilotlight_runtime.sandbox.errors import UidsExhausted

#: Above what `useradd` hands out (60 000) and beside the first range that Docker and Podman take for subordinate ids
#: (100 000, 165 536), so that a container never shares a uid with a person or another runtime.
FIRST_UID = 231_072
UIDS = 4_096


class UidPool:
    """Numbers from `first` to `first + count - 1`; the one unused for longest is taken next.

    A freed uid rests as long as possible: whatever a dead container may have left behind under it (a file, a process in
    its last moments) does not meet the next tenant.
    """

    def __init__(self, first: int = FIRST_UID, count: int = UIDS) -> None:
        if first < 1 or count < 1:
            raise ValueError(f"a range of host uids needs first >= 1 and count >= 1, not {first} and {count}")
        self._range = range(first, first + count)
        self._fresh = iter(self._range)
        self._taken: set[int] = set()
        self._resting: dict[int, None] = {}  # in the order of release

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
        """Give `uid` back; a second release of the same uid is a bug and raises `ValueError`."""
        if uid not in self._taken:
            raise ValueError(f"host uid {uid} is not in use")
        self._taken.remove(uid)
        self._resting[uid] = None

    def in_use(self) -> frozenset[int]:
        return frozenset(self._taken)
