"""The lines of a report as Parquet: money as decimals of 12 places, time as whole nanoseconds."""

from __future__ import annotations

import io
from collections.abc import Sequence
from decimal import Decimal
from importlib import import_module
from typing import Any

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.ledger.usage_report import UsageReport, cells_of, columns_of

MONEY_PLACES, MONEY_DIGITS = 12, 38
INTEGERS = frozenset({"ppm", "calls", "ns"})


def as_parquet(report: UsageReport, groups: Sequence[str]) -> bytes:
    """The report as a Parquet file.

    Raises:
        BadInput: pyarrow is not installed.
    """
    try:
        arrow = import_module("pyarrow")
        parquet = import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        needed = "this gateway cannot write Parquet: pip install 'pilotlight[parquet]' where it runs"
        raise BadInput(f"format: {needed}, or ask for csv.", field="format") from error
    names = columns_of(groups)
    rows = [cells_of(line, groups) for line in report.lines]
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    columns["cost"] = [Decimal(text) for text in columns["cost"]]
    schema = arrow.schema([(name, _type(arrow, name)) for name in names])
    out = io.BytesIO()
    parquet.write_table(arrow.table(columns, schema=schema), out)
    return out.getvalue()


def _type(arrow: Any, name: str) -> Any:
    if name in INTEGERS:
        return arrow.int64()
    if name == "cost":
        return arrow.decimal128(MONEY_DIGITS, MONEY_PLACES)
    return arrow.float64() if name == "gpu_seconds" else arrow.string()
