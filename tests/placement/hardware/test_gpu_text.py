"""GPUs of a machine in words."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_placement.hardware.gpu_text import MOST_GPUS, read_gpus


def test_kinds_are_read() -> None:
    """With how they are given; none is nothing."""
    kinds = read_gpus("2xH100-80GB:mig, T4:share")
    assert [(kind.count, kind.device.name, kind.mig, kind.shareable) for kind in kinds] == [
        (2, "H100-80GB", True, False), (1, "T4", False, True),
    ]  # fmt: skip
    assert read_gpus("") == ()


@pytest.mark.parametrize(
    "text", ["2x", "H100:fast", "3xUnknown", "0xT4", f"{MOST_GPUS + 1}xT4", "T4:mig", "40xT4,40xT4"]
)
def test_what_is_no_machine_is_refused_by_its_part(text: str) -> None:
    """Naming the field."""
    with pytest.raises(BadInput) as caught:
        read_gpus(text)
    assert caught.value.more["field"] == "gpus"
