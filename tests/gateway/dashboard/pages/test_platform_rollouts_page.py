"""The list of all tenants' rollouts."""

from __future__ import annotations

from tests.gateway.dashboard.site import Site


async def test_it_is_of_all_tenants_and_for_operators(site: Site) -> None:
    async with site.logged_in() as browser:
        answer = await browser.get("/ui/all-rollouts")
        assert answer.status_code == 200
        assert ">Tenant</th>" in answer.text
    assert ("GET", "/v1/rollouts?all=true") in site.api.asked
    async with site.logged_in(site.world.add_key("acme", "read", "deploy")) as browser:
        assert (await browser.get("/ui/all-rollouts")).status_code == 403
