"""What a verified token says, by its issuer's record."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pilotlight_core.model.errors import Forbidden, PilotlightError, Unauthenticated
from pilotlight_core.model.records.issuers import IssuerRecord
from pilotlight_gateway.oidc.token_claims import (
    TokenSubject,
    check_addressee,
    check_claims,
    still_holds,
    terms_of,
    values_of,
)
from tests.gateway.oidc.token_maker import AUDIENCE, RECORD, claims
from tests.gateway.world import WALL


def code(record: IssuerRecord = RECORD, at: float = WALL, **changed: Any) -> str:
    with pytest.raises(PilotlightError) as caught:
        check_claims(record, claims(**changed), at)
    return caught.value.wire_code


def test_a_good_one_is_its_tenants() -> None:
    """With the scopes of all of its groups, until it ends, with the leeway."""
    found = check_claims(RECORD, claims(groups=["engineers", "admins", "cooks"]), WALL)
    groups = ("engineers", "admins")
    scopes = frozenset({"invoke", "deploy", "operator"})
    assert found == TokenSubject("ada", "acme", scopes, WALL + 330, groups, ("acme-corp",))


@pytest.mark.parametrize("audience", [AUDIENCE, [AUDIENCE], ["other", AUDIENCE]])
def test_it_is_for_this_platform(audience: Any) -> None:
    assert check_claims(RECORD, claims(aud=audience), WALL).subject == "ada"


@pytest.mark.parametrize(
    "changed",
    [
        {"aud": None}, {"aud": "other"}, {"aud": []}, {"aud": [1]}, {"aud": {"a": AUDIENCE}}, {"aud": AUDIENCE + "/"},
        {"aud": [AUDIENCE] * 51}, {"iss": "https://login.example.com/"}, {"iss": None}, {"sub": None}, {"sub": ""},
        {"sub": 7}, {"sub": "a" * 256}, {"sub": "a\nb"},
        {"sub": "\u202eada"}, {"exp": None}, {"exp": "soon"}, {"exp": True}, {"exp": float("inf")},
        {"cnf": {"jkt": "x"}}, {"cnf": {"x5t#S256": "x"}}, {"cnf": 0},
        {"nbf": WALL + 31}, {"nbf": "now"}, {"iat": WALL + 31}, {"iat": []},
    ],
)  # fmt: skip
def test_what_it_must_say(changed: dict[str, Any]) -> None:
    assert code(**changed) == "token_invalid"


def test_clocks_may_differ_by_the_leeway() -> None:
    """And by no more: at the very end it has ended."""
    assert check_claims(RECORD, claims(nbf=WALL + 30, iat=WALL + 30), WALL)
    assert check_claims(RECORD, claims(exp=WALL), WALL + 29.9)
    assert code(exp=WALL, at=WALL + 30) == "token_expired"
    assert code(replace(RECORD, leeway_s=0.0), exp=WALL, at=WALL) == "token_expired"


def test_id_tokens_are_their_clients() -> None:
    """Where the audience is the client, a token of several audiences has to have been made for it."""
    ids = replace(RECORD, audience="cli")
    assert check_claims(ids, claims(aud="cli"), WALL)
    assert check_claims(ids, claims(aud=["cli", "other"], azp="cli"), WALL)
    assert code(ids, aud=["cli", "other"]) == "token_invalid"
    assert code(ids, aud="cli", azp="other") == "token_invalid"
    assert check_claims(RECORD, claims(azp="another-program"), WALL)


@pytest.mark.parametrize(
    "changed",
    [
        {"org": None}, {"org": "other-corp"}, {"org": 7}, {"org": {"acme-corp": 1}}, {"org": "*"}, {"org": ["*"]},
        {"org": "x" * 257}, {"groups": None}, {"groups": []}, {"groups": ["cooks"]}, {"groups": "cooks"},
        {"groups": {"engineers": 1}}, {"groups": ["*"]}, {"groups": [["engineers"]]},
    ],
)  # fmt: skip
def test_what_is_not_on_record_gives_nothing(changed: dict[str, Any]) -> None:
    """Denied by default, with another answer than what is no good."""
    assert code(**changed) == "no_access"


def test_little_is_kept_of_what_a_token_says() -> None:
    """Thousands are remembered: of groups those on record, as the record spells them, and few values of the tenant."""
    many = [f"group-{number:04}" for number in range(500)]
    found = check_claims(RECORD, claims(groups=[*many, "engineers"]), WALL)
    assert found.groups == ("engineers",)
    assert found.groups[0] is next(iter(RECORD.groups))
    assert check_claims(RECORD, claims(org=[*many[:31], "acme-corp", "x" * 257]), WALL).tenant == "acme"
    assert code(org=[*many[:32], "acme-corp"]) == "no_access"


def test_several_tenants_are_none() -> None:
    record = replace(RECORD, tenants={"acme-corp": "acme", "zoo-corp": "zoo", "acme-labs": "acme"})
    assert check_claims(record, claims(org=["acme-corp", "acme-labs"]), WALL).tenant == "acme"
    assert code(record, org=["acme-corp", "zoo-corp"]) == "no_access"


def test_a_claim_may_name_the_tenant_itself() -> None:
    """If the record says so, and if it is a name."""
    record = replace(RECORD, tenants={"*": "*", "acme-corp": "acme"})
    assert check_claims(record, claims(org="zoo"), WALL).tenant == "zoo"
    assert check_claims(record, claims(org="acme-corp"), WALL).tenant == "acme"
    assert code(record, org="a.b") == "no_access"
    everybody = replace(RECORD, tenants={"*": "guests"})
    assert check_claims(everybody, claims(org="whoever"), WALL).tenant == "guests"
    assert check_claims(everybody, claims(org=["whoever"]), WALL).tenant == "guests"


@pytest.mark.parametrize("other", ["*", "guests"])
@pytest.mark.parametrize("org", [None, 5, {}, {"p": 1}, [], [5], "*", ["*"], ["p", "q"], ["p", "a.b"], True])
def test_whichever_value_is_still_one(other: str, org: Any) -> None:
    """A token without the claim, with one of another kind, or with several values has no tenant."""
    assert code(replace(RECORD, tenants={"*": other}), org=org) == "no_access"


def test_little_is_said_of_what_is_not_verified() -> None:
    """By when and for whom it is, and no word of what is on record; the rest is looked at behind the signature."""
    assert check_addressee(RECORD, claims(org="other", groups=[], sub=None), WALL) == WALL + 330
    for changed in ({"aud": "other"}, {"iss": "other"}, {"exp": WALL - 31}):
        with pytest.raises(Unauthenticated) as caught:
            check_addressee(RECORD, claims(**changed), WALL)
        assert AUDIENCE not in str(caught.value.detail)


def test_a_fixed_tenant_needs_no_claim() -> None:
    record = replace(RECORD, tenant="acme", tenant_claim="", tenants={})
    assert check_claims(record, claims(org=None), WALL).tenant == "acme"


def test_everybodys_scopes() -> None:
    """Those of `*` are for each token with a tenant, whatever its groups."""
    record = replace(RECORD, groups={"*": ("read",), "engineers": ("invoke",)})
    assert check_claims(record, claims(groups=None), WALL).scopes == {"read"}
    assert check_claims(record, claims(), WALL).scopes == {"read", "invoke"}
    with pytest.raises(Forbidden):
        check_claims(record, claims(org="other"), WALL)


def test_claims_are_found_by_name_or_path() -> None:
    """A name may have dots; a scope's string is a list."""
    found = {"a": {"b": ["x", 7, "*"]}, "a.c": "y", "scope": "one two", "n": 7}
    assert values_of(found, "a.b") == ("x",)
    assert values_of(found, "a.c") == ("y",)
    assert values_of(found, "scope") == ("one", "two")
    for path in ("a", "n", "a.b.c", "none", "", "."):
        assert values_of(found, path) == ()


@pytest.mark.parametrize(
    ("changed", "holds"),
    [
        ({}, True),
        ({"groups": {"engineers": ("invoke", "deploy", "read"), "cooks": ("read",)}}, True),
        ({"groups": {"*": ("invoke", "deploy")}}, True),
        ({"tenants": {"acme-corp": "acme", "zoo-corp": "zoo"}, "leeway_s": 0.0, "changed_at": 9.0}, True),
        ({"groups": {"engineers": ("invoke",)}}, False),
        ({"groups": {}}, False),
        ({"tenants": {"acme-corp": "zoo"}}, False),
        ({"tenants": {"zoo-corp": "zoo"}}, False),
        ({"tenant": "zoo", "tenant_claim": "", "tenants": {}}, False),
        ({"algorithms": ("RS256",)}, False),
        ({"jwks_url": "https://login.example.com/other"}, False),
        ({"audience": "other"}, False),
        ({"groups_claim": "roles"}, False),
    ],
)
def test_what_a_changed_record_ends(changed: dict[str, Any], holds: bool) -> None:
    """Only what it would not give any more: to add a group cuts nobody's calls."""
    subject = check_claims(RECORD, claims(), WALL)
    assert still_holds(replace(RECORD, **changed), subject, terms_of(RECORD)) is holds
