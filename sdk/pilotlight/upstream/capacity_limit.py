"""How many requests an API takes at a time, learnt from its answers. Pure: instants are arguments, in seconds.

It begins with few and doubles until the first refusal, then adds one per round of requests and halves at a refusal, as
TCP does. Requests that were under way when it was halved say nothing new: they halve it no further. Where the API says
how long to wait (Retry-After), nothing is sent until then.
"""

from __future__ import annotations

FIRST = 4.0
LONGEST_PAUSE_S = 60.0
"""An API that wants more time gets a request now and then."""
LEAST_PAUSE_S = 0.05
"""After a refusal without a time."""
MOST_PAUSE_S = 5.0
"""After several rounds of them: each waits four times as long as the one before, until something is answered."""


class CapacityLimit:
    """At most `most` requests at a time."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = min(FIRST, float(most))
        self.running = 0
        self._starts_slowly = True
        self._paused_until = 0.0
        self._halved_at = float("-inf")
        self._pause_s = LEAST_PAUSE_S

    def room(self, at: float) -> int:
        """How many more may be sent now."""
        return 0 if at < self._paused_until else max(0, int(self.limit) - self.running)

    def pause_s(self, at: float) -> float:
        """The seconds until something may be sent again; 0.0: it may now, as far as answers say."""
        return max(0.0, self._paused_until - at)

    def send(self) -> None:
        """A request goes out."""
        self.running += 1

    def on_answer(self) -> None:
        """One was answered."""
        self.running -= 1
        self._pause_s = LEAST_PAUSE_S
        self.limit = min(float(self.most), self.limit + (1.0 if self._starts_slowly else 1.0 / self.limit))

    def on_refusal(self, sent_at: float, at: float, retry_after_s: float | None) -> None:
        """One was refused, or had no answer in time."""
        self.running -= 1
        self._starts_slowly = False
        pause_s = LEAST_PAUSE_S if retry_after_s is None else min(max(retry_after_s, 0.0), LONGEST_PAUSE_S)
        if sent_at >= self._halved_at:
            self.limit, self._halved_at = max(1.0, self.limit / 2), at
            if retry_after_s is None:
                pause_s, self._pause_s = self._pause_s, min(4 * self._pause_s, MOST_PAUSE_S)
        self._paused_until = max(self._paused_until, at + pause_s)

    def on_failure(self) -> None:
        """One failed in a way that says nothing of capacity."""
        self.running -= 1
