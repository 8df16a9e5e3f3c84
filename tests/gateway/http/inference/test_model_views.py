"""Models in the words of the protocol."""

from __future__ import annotations

from pilotlight_gateway.http.inference.inference_counts import CountedModel, ModelCounts
from pilotlight_gateway.http.inference.model_lookup import FoundModel
from pilotlight_gateway.http.inference.model_views import config_view, model_view, server_view, statistics_view
from tests.builders.specs import version_record
from tests.gateway.served_models import model_method

TEXTS = {"type": "array", "items": {"type": "string"}}


def test_metadata_and_configuration_name_the_same_tensors() -> None:
    """BYTES are strings to Triton."""
    found = FoundModel("shop.f", version_record(), model_method(x=TEXTS, output={"type": "object"}))
    assert model_view(found, ["1", "2"])["inputs"] == [{"name": "x", "datatype": "BYTES", "shape": [-1]}]
    assert model_view(found, ["1", "2"])["outputs"] == []
    assert config_view(found)["input"] == [{"name": "x", "data_type": "TYPE_STRING", "dims": [-1], "optional": False}]
    assert server_view("1.2")["version"] == "1.2"


def test_statistics_are_durations_with_their_counts() -> None:
    """Of calls that ended well each stage, of the others the whole."""
    counts = ModelCounts()
    counts.succeeded, counts.compute_ns, counts.failed, counts.failed_ns = 3, 300, 1, 7
    view = statistics_view(CountedModel("acme", "shop.f", "2"), counts)
    assert (view["name"], view["version"], view["inference_count"]) == ("shop.f", "2", 3)
    assert view["inference_stats"]["compute_infer"] == {"count": 3, "ns": 300}
    assert view["inference_stats"]["fail"] == {"count": 1, "ns": 7}
