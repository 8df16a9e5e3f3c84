"""What a binding says of itself."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.bindings import Bound, Unbound
from pilotlight_core.model.messages.wire import decode, encode
from tests.builders.nodes import binding


@pytest.mark.parametrize(
    ("slice_id", "parts"),
    [
        ("cpu-0", ("cpu-0",)),
        ("GPU-1", ("GPU-1",)),
        ("GPU-1:250/1000~c1", ("GPU-1:250/1000~c1",)),
        ("GPU-1+GPU-2", ("GPU-1", "GPU-2")),
    ],
)
def test_several_whole_devices_are_metered_each(slice_id: str, parts: tuple[str, ...]) -> None:
    """Any other slice is metered as it is."""
    assert binding(slice=slice_id).parts == parts


def test_a_binding_names_app_and_function() -> None:
    """As logs and usage name them."""
    assert binding(function="acme:shop.hello").app_and_function == ("shop", "hello")


def test_bindings_travel() -> None:
    """The ledger reads them from the stream of usage."""
    for message in (Bound(binding=binding()), Unbound(container="c1", node="n1")):
        assert decode(encode(message)) == message
