"""What a home knows of how the traffic of apps is split: which revision is the newest, and which versions it may reach.

A call whose version was chosen by an older revision than the home's own is refused, so that its origin chooses anew:
a rollback holds for every origin from the instant at which the home knows of it, also for one that was frozen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pilotlight_core.model.errors import Conflict
from pilotlight_core.model.messages.call_messages import CallDescriptor
from pilotlight_core.model.rollouts.rollout_record import RolloutRecord, RolloutState

KIND = "rollout."
STALE = "stale_split"
HEARD_S = 5.0
"""Within which a record that calls were chosen by comes here too. It counts no longer: of an app that was deleted and
deployed anew the revisions begin at 1 again."""


class SplitRevisions:
    """By app (`tenant:app`). `changed` is a callback of the registry."""

    def __init__(self) -> None:
        self._revisions: dict[str, int] = {}
        self._left: set[str] = set()
        """Versions that no unnamed call may reach any more, since the last look."""
        self._heard: dict[str, tuple[int, float]] = {}
        """What calls were chosen by that is newer than what is known here, and until when that counts."""
        self._barred: dict[str, set[str]] = {}
        """All such versions, by app."""

    def changed(self, key: str, record: Any) -> None:
        """A record of the registry has changed; None: it is gone."""
        if not key.startswith(KIND):
            return
        app = key.removeprefix(KIND).replace(".", ":", 1)
        if not isinstance(record, RolloutRecord):
            self._revisions.pop(app, None)
            self._barred.pop(app, None)
            self._heard.pop(app, None)
        else:
            self._revisions[app] = record.revision
            if self._heard.get(app, (0, 0.0))[0] <= record.revision:
                self._heard.pop(app, None)
            self._barred[app] = barred = barred_by(record)
            self._left |= barred

    def take_left(self) -> set[str]:
        """The versions whose queued calls are to be chosen anew: what was split off goes back."""
        left, self._left = self._left, set()
        return left

    def check(self, call: CallDescriptor, at: float, waits: Callable[[str], bool]) -> None:
        """Refuse a call whose version was chosen by an older revision than is known here.

        One that `waits` at this home (asked by its id), or that was granted before, only if its version is barred: a
        share that has risen since moves nobody who waits, and a stream goes on where it began. That an origin has sent
        it to a home (`CallDescriptor.admitted`) says nothing: that home may have been gone.

        Raises:
            Conflict: `stale_split`.
        """
        # Most platforms have no rollout, and most calls then cost this look alone.
        if self._revisions and call.split >= 0:
            newest = self._newest(call.function.partition(".")[0], call.split, at)
            if newest > call.split:
                is_let_in = call.grant_number > 0 or waits(call.call_id)
                if not is_let_in or self.is_barred(call.function, call.version, call.split):
                    raise stale()

    def _newest(self, app: str, split: int, at: float) -> int:
        """The newest revision that is known, or that a call was lately chosen by: an origin may know it sooner."""
        known = self._revisions.get(app, 0)
        heard, until = self._heard.get(app, (0, 0.0))
        if split > max(known, heard if at < until else 0):
            self._heard[app] = (split, at + HEARD_S)
        return max(known, heard) if at < until else known

    def is_barred(self, function: str, version: str, split: int) -> bool:
        """Whether a call that was chosen by the revision `split` may not be run by that version any more."""
        if not self._barred or split < 0:
            return False
        app = function.partition(".")[0]
        return version in self._barred.get(app, ()) and self._revisions.get(app, 0) > split


def barred_by(record: RolloutRecord) -> set[str]:
    """The versions of an app that no call reaches that did not name its version."""
    barred, rollout = set(record.called_back), record.rollout
    if rollout is not None:
        if not rollout.share and rollout.state is not RolloutState.PROMOTED:
            barred |= set(rollout.canary.values()) - set(rollout.control.values())
        if not rollout.twin_share:
            barred |= set(rollout.twins.values())
    return barred


def stale() -> Conflict:
    """The refusal of a call that is to be chosen anew."""
    return Conflict("The traffic of its app was split anew meanwhile.", code=STALE)
