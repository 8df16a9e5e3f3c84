"""The drivers log what goes wrong and go on; in the simulation, an error that they meet breaks the history."""

from __future__ import annotations

import logging
from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
import structlog

from tests.simulation.promises import Broken


def _break(_logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
    if isinstance(error := event.get("exc_info"), Broken):
        raise error
    if error:
        raise Broken("P6", f"{event['event']}: {event}")
    raise structlog.DropEvent


@pytest.fixture(autouse=True)
def errors_break_the_history() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(
        processors=[_break],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
    )
    yield
    structlog.configure(**before)
