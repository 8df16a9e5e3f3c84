"""The protocol's datatypes."""

from __future__ import annotations

import numpy as np

from pilotlight_gateway.tensors.datatypes import BYTES, DATATYPES, DTYPES, NARROW, WIDE, is_datatype, width_of


def test_widths_are_those_of_numpy() -> None:
    """Of all that numpy has; bfloat16 has two bytes; of BYTES they differ."""
    for datatype, dtype in DTYPES.items():
        assert width_of(datatype) == (2 if datatype == "BF16" else np.dtype(dtype).itemsize)
        assert DATATYPES[dtype] == datatype
        assert is_datatype(datatype)
    assert width_of(BYTES) == 0
    assert is_datatype(BYTES)
    assert not is_datatype("FP8")


def test_what_json_lacks_has_a_wider_form() -> None:
    """Which holds all of its values."""
    assert WIDE.keys() == NARROW
    assert all(width_of(wide) > width_of(narrow) for narrow, wide in WIDE.items())
