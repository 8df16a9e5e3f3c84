"""The datatypes of the Open Inference Protocol, and the dtypes of arrays that they stand for."""

from __future__ import annotations

import struct

from pilotlight_core.model.values import FORMATS

BYTES = "BYTES"
"""Strings and bytes: each element is its length, four bytes little-endian, and so many bytes."""
DTYPES = {
    "BOOL": "bool", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64", "INT8": "int8",
    "INT16": "int16", "INT32": "int32", "INT64": "int64", "FP16": "float16", "BF16": "bfloat16", "FP32": "float32",
    "FP64": "float64",
}  # fmt: skip
"""datatype -> dtype."""
DATATYPES = {dtype: datatype for datatype, dtype in DTYPES.items()}
NARROW = frozenset(("FP16", "BF16"))
"""Never in JSON: their elements travel as bytes alone."""
WIDE = {"FP16": "FP32", "BF16": "FP32"}
"""What holds all their values, and has a form in JSON."""


def width_of(datatype: str) -> int:
    """The bytes of an element; 0: they differ."""
    if datatype == BYTES:
        return 0
    return 2 if datatype == "BF16" else struct.calcsize(format_of(datatype))


def format_of(datatype: str) -> str:
    """The struct format of an element; bfloat16 has none, and is read as its two bytes."""
    return "H" if datatype == "BF16" else FORMATS[DTYPES[datatype]]


def is_datatype(name: str) -> bool:
    return name == BYTES or name in DTYPES
