"""Names of aliases."""

import re

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.rollouts.alias_names import ALIAS_PATTERN, check_alias


@pytest.mark.parametrize("name", ["v7", "V7", "v0", "v123456789012", "ver_0123", "a.b", "", "a b"])
def test_what_looks_like_a_version_or_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(BadInput) as refused:
        check_alias(name)
    assert refused.value.more["field"] == "alias"


@pytest.mark.parametrize("name", ["prod", "staging-2", "version", "v"])
def test_words_are_aliases(name: str) -> None:
    assert check_alias(name) == name


@pytest.mark.parametrize(
    "name", ["v7", "V7", "ver_0123", "a.b", "", "a b", "prod\n", "prod", "staging-2", "version", "v"]
)
def test_the_schema_says_the_same(name: str) -> None:
    expected = name in {"prod", "staging-2", "version", "v"}
    assert (re.search(ALIAS_PATTERN, name) is not None) is expected
