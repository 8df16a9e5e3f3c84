"""What a gateway asks of the ledger."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import structlog

from pilotlight_core.model.errors import Unavailable
from pilotlight_gateway.ledger.ledger_errors import LedgerRefused
from pilotlight_gateway.ledger.usage_checks import BoundContainer
from pilotlight_gateway.ledger.usage_report import UsageReport, UsageRow

log = structlog.get_logger(__name__)

if TYPE_CHECKING:
    from pilotlight_core.model.api.billing_api import LateLine
    from pilotlight_core.model.api.receipt_api import CallReceipt
    from pilotlight_core.model.price_book import PriceBook
    from pilotlight_gateway.ledger.ledger_store import Ledger


class LedgerReader:
    """Opens the ledger for the first question: SQLAlchemy is a fifth of an idle gateway's memory.

    Methods block, call them in a thread; several threads may. All but `close` raise Unavailable if the ledger cannot
    be read.
    """

    def __init__(self, url: str, book: PriceBook) -> None:
        self.book = book
        self._url = url
        self._lock = threading.Lock()
        self._ledger: Ledger | None = None

    def usage(self, tenant: str | None, first: str, until: str, groups: Sequence[str]) -> UsageReport:
        """A tenant's usage, or for None everybody's, of the days from `first` to before `until`."""
        from pilotlight_gateway.ledger.usage_queries import usage_report

        with self._asked() as ledger:
            return usage_report(ledger, tenant, first, until, groups)

    def sums(self, tenant: str | None, first: str, until: str, groups: Sequence[str]) -> list[UsageRow]:
        """What `usage` is made of: exact sums by day, price, ppm and rate, and by what `groups` name."""
        from pilotlight_gateway.ledger.usage_queries import usage_sums

        with self._asked() as ledger:
            return list(usage_sums(ledger, tenant, first, until, groups))

    def device_sums(self, first: str, until: str) -> list[dict[str, Any]]:
        """What each device was metered for, and sold."""
        from pilotlight_gateway.ledger.usage_queries import device_sums

        with self._asked() as ledger:
            return device_sums(ledger, first, until)

    def late_lines(self, tenant: str, first: str, until: str) -> list[LateLine]:
        """What is booked in days and is of days before."""
        from pilotlight_gateway.ledger.usage_queries import late_lines

        with self._asked() as ledger:
            return late_lines(ledger, tenant, first, until)

    def open_from(self) -> str:
        """The first day that is not closed; "": all are open."""
        with self._asked() as ledger:
            return ledger.open_from()

    def first_day(self) -> str:
        """The first day with usage; "": there is none."""
        with self._asked() as ledger:
            return ledger.first_day()

    def identity(self) -> str:
        """What tells this ledger from others."""
        with self._asked() as ledger:
            return ledger.identity()

    def receipt(self, tenant: str, call_id: str) -> CallReceipt | None:
        """What a call was billed; None: there is no receipt, or none yet."""
        from pilotlight_gateway.ledger.usage_queries import call_receipt_of

        with self._asked() as ledger:
            return call_receipt_of(ledger, tenant, call_id)

    def bound_containers(self, containers: Iterable[str]) -> dict[str, BoundContainer]:
        """Those of `containers` that were ever bound and are not pruned."""
        with self._asked() as ledger:
            return ledger.bound_containers(containers)

    def quarantine(self, *, node: str | None, before: int | None, limit: int) -> list[dict[str, Any]]:
        """The last quarantined usage, of one node or of all, with an id below `before`."""
        with self._asked() as ledger:
            return ledger.quarantine(node=node, before=before, limit=limit)

    def quarantine_counts(self) -> list[dict[str, Any]]:
        """How much was ever quarantined, by node and reason."""
        with self._asked() as ledger:
            return ledger.quarantine_counts()

    def close(self) -> None:
        if self._ledger is not None:  # without the lock, which somebody may hold who waits for a database
            self._ledger.close()

    @contextmanager
    def _asked(self) -> Iterator[Ledger]:
        """The ledger, for a question that its database may leave unanswered."""
        ledger = self._opened()
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield ledger
        except SQLAlchemyError as error:
            log.exception("the ledger does not answer")
            raise Unavailable("The ledger cannot be read: its database does not answer.") from error

    def _opened(self) -> Ledger:
        with self._lock:
            if self._ledger is None:
                from sqlalchemy.exc import SQLAlchemyError

                from pilotlight_gateway.ledger.ledger_store import Ledger

                try:
                    self._ledger = Ledger(self._url, self.book)
                except (LedgerRefused, SQLAlchemyError, OSError) as error:
                    log.exception("the ledger cannot be opened")
                    why = str(error) if isinstance(error, LedgerRefused) else "its database does not answer"
                    raise Unavailable(f"The ledger cannot be read: {why}") from error
            return self._ledger
