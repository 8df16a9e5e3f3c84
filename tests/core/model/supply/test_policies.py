"""Policies that cannot be meant are refused by their field."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.supply.policies import IgnoredVulnerability, Policy, check_policy


def test_a_policy_may_name_packages_with_versions_and_licences_with_a_star() -> None:
    """And everything else may be left out."""
    check_policy(Policy())
    packages = ("requests<2.32,>=2", "torch*", "a==1.*,!=1.2,", "b===1")
    check_policy(Policy(deny_packages=packages, deny_licences=("AGPL-*",), allow_licences=("MIT",)))


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        (Policy(deny_packages=("../x",)), "deny_packages"),
        (Policy(deny_packages=("a b",)), "deny_packages"),
        (Policy(deny_packages=("a<2,<",)), "deny_packages"),
        (Policy(deny_packages=("a=1",)), "deny_packages"),
        (Policy(deny_packages=("a" + "<" * 150 + " ",)), "deny_packages"),  # read in no time: each part in one way
        (Policy(deny_licences=("(" * 199,)), "deny_licences"),
        (Policy(deny_licences=("MIT OR",)), "deny_licences"),
        (Policy(allow_licences=("MIT OR BSD-3-Clause",)), "allow_licences"),
        (Policy(ignore=(IgnoredVulnerability(id="X", reason="a"),) * 2), "ignore"),
    ],
)
def test_what_cannot_be_meant_is_refused(policy: Policy, field: str) -> None:
    """Naming the field and what was expected."""
    with pytest.raises(BadInput) as refused:
        check_policy(policy)
    assert refused.value.more["field"] == field
