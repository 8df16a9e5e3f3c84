"""What a function may ask for its streams."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import Mode
from pilotlight_core.model.streams.resuming import Resumable, resumable_fault
from pilotlight_core.model.versions.manifest_codec import RESUMABLE, needs_of
from pilotlight_core.model.versions.spec_checks import check_spec
from tests.builders.specs import function_spec, method


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (UNSET, ""),
        (Resumable(), ""),
        (Resumable(resume_s=0, migrations=0), ""),
        (Resumable(resume_s=600, migrations=10), ""),
        (Resumable(resume_s=601), "resume_s must be 0 to 600 seconds, not 601"),
        (Resumable(resume_s=float("nan")), "resume_s must be 0 to 600 seconds, not nan"),
        (Resumable(migrations=-1), "migrations must be 0 to 10, not -1"),
    ],
)
def test_what_is_asked_for_has_bounds(asked: Resumable, why: str) -> None:
    """Of time that is waited, and of containers that are lost."""
    assert resumable_fault(asked, {Mode.GENERATOR}) == why


def test_only_what_yields_is_resumable() -> None:
    """A class needs one generator among its methods, and the agent has to know what is asked of it."""
    plain = function_spec("f", method(), resumable=Resumable())
    mixed = function_spec("f", method("a"), method("b", mode=Mode.GENERATOR), resumable=Resumable())

    with pytest.raises(BadInput, match="f: resumable: resumable= is for generators: nothing here yields"):
        check_spec(plain)
    check_spec(mixed)
    assert RESUMABLE in needs_of(mixed)
