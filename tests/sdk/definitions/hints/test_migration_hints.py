"""Options of other platforms: each is refused with the option that stands for it here."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight import App, OptionError
from pilotlight.definitions.hints.migration_hints import BATCHED_HINTS, NOT_YET, OPTION_HINTS, explain_unknown
from pilotlight.definitions.options import KNOWN


def decorate_with(**options: Any) -> None:
    App("tests").gpu_function(**options)(decorate_with)


@pytest.mark.parametrize("name", sorted(OPTION_HINTS))
def test_an_option_of_another_platform_is_refused_with_ours(name: str) -> None:
    """The value does not matter."""
    with pytest.raises(OptionError) as caught:
        decorate_with(**{name: 1})
    assert f"{name}=" in str(caught.value)
    assert OPTION_HINTS[name] in str(caught.value)


@pytest.mark.parametrize("name", sorted(NOT_YET))
def test_an_option_that_is_not_supported_yet_is_refused_by_name(name: str) -> None:
    """The error has the reason."""
    with pytest.raises(OptionError) as caught:
        decorate_with(**{name: ["x"]})
    assert f"{name}= is not supported yet" in str(caught.value)
    assert NOT_YET[name] in str(caught.value)


def test_no_hint_is_an_option() -> None:
    """Such an option would be both refused and taken."""
    assert not KNOWN & OPTION_HINTS.keys()
    assert not KNOWN & NOT_YET.keys()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("max_batch_sise", "max_batch_sise= is not an option; did you mean max_batch_size=?"),
        ("batch_sizes", "batch_sizes= is not an option; here it is max_batch_size=."),
        ("timeout_ms", "timeout_ms= is another platform's word; here it is wait_ms=."),
        ("volumes", f"volumes= is not supported yet: {NOT_YET['volumes']}."),
        (
            "base",
            "base= is an option of the app, not of a function: App(NAME, base=) says it for all of its functions.",
        ),
        ("zzz", "zzz= is not an option; the options are cost, max_batch_size."),
    ],
)
def test_an_unknown_option_is_explained(name: str, expected: str) -> None:
    """A misspelt option, one of another platform, one of the app and one like no other differ."""
    assert explain_unknown(name, frozenset({"max_batch_size", "cost"}), BATCHED_HINTS) == expected
