"""What a controller that only advises would have, in its log."""

from __future__ import annotations

import structlog

from pilotlight_autoscaler.observations.wish_log import WishChange

log = structlog.get_logger()


def log_advice(function: str, change: WishChange) -> None:
    """Log what a function should have by the advice of a controller that does not lead."""
    wish = change.wish
    log.info("advice", function=function, wanted=wish.count, there=change.there, rule=wish.rule, because=wish.because)
