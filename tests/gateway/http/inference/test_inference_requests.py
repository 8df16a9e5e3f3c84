"""What is asked of the fixed inference API, and answered."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_gateway.http.inference.inference_requests import InferenceRequest


def test_a_request_has_no_other_fields() -> None:
    """An input may be anything."""
    assert msgspec.json.decode(b'{"model": "a.b", "input": [1]}', type=InferenceRequest).parameters == {}
    for wrong in (b'{"model": "a.b"}', b'{"model": "a.b", "input": 1, "stream": true}'):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(wrong, type=InferenceRequest)
