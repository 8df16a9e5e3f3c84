"""What a browser gets of the dashboard, and what pages of other sites get: nothing."""

from __future__ import annotations

import html
import re
import time

import httpx
import pytest

from pilotlight_gateway.dashboard.all_pages import ACTIONS, PAGES
from pilotlight_gateway.dashboard.dashboard_app import DashboardApp
from pilotlight_gateway.dashboard.page_parts.page import Section
from pilotlight_gateway.dashboard.request_rules import FORM_BYTES, POLICY
from pilotlight_gateway.tenancy.api_keys import revoke_key
from pilotlight_gateway.tenancy.login_sessions import open_session
from tests.builders.jobs import dead_job
from tests.builders.kept import CALL_ID, kept_call
from tests.gateway.dashboard.site import OWN_PAGE, Site, csrf_of
from tests.gateway.world import World, function

LISTED = [page.path for page in PAGES if page.listed]
NAME, JOB = "secretname12", "call_local_1_00000000000000000009"
NO_CALL = "call_local_1_0000000000000000000z"
HREF = re.compile(r'(?:href|data-topic|data-stream)="(/ui/(?!static/|do/|logout)[^"]*)"')
CSRF_TOKEN = re.compile(r'name="csrf" value="[0-9a-f]+"')
CRAWLED = 300
"""Pages."""
HOSTILE = '<img src=x onerror="document.title=1"></script>'


async def test_without_a_session_every_page_is_the_login(site: Site) -> None:
    """And the login is one form."""
    async with site.browser() as browser:
        for path in ("/", "/ui", "/ui/", *LISTED, "/ui/none"):
            answer = await browser.get(path)
            while answer.status_code == 303 and answer.headers["location"] != "/ui/login":
                answer = await browser.get(answer.headers["location"])
            assert (answer.status_code, answer.headers["location"]) == (303, "/ui/login")
        login = await browser.get("/ui/login")
    assert login.status_code == 200
    assert login.text.count("<form") == 1
    assert site.api.asked == []


@pytest.mark.parametrize("path", LISTED)
async def test_an_operator_sees_every_page(site: Site, path: str) -> None:
    """Under the same policy, within the bounds of a page, and with its answer first."""
    async with site.logged_in() as browser:
        answer = await browser.get(path, headers={"accept-encoding": "identity"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["cache-control"] == "no-store"
    assert (answer.headers["x-frame-options"], answer.headers["referrer-policy"]) == ("DENY", "no-referrer")
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert 'class="sentence' in answer.text
    assert len(answer.content) < 150_000
    for forbidden in ("style=", "<style", "onclick", "onload", "javascript:"):
        assert forbidden not in answer.text
    assert answer.text.count("<script") == answer.text.count('<script type="module" src="/ui/static/') + (
        answer.text.count('<script src="/ui/static/')
    )


async def test_the_cookie_is_the_browsers_alone(site: Site) -> None:
    """No script has it, no other host and no other site; and it is a session, never the key."""
    async with site.browser() as browser:
        answer = await browser.post("/ui/login", data={"key": str(site.world.operator)}, headers=OWN_PAGE)
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-pilotlight=pl_session_")
    for part in ("Secure", "HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=28800"):
        assert f"; {part}" in cookie
    assert "Domain" not in cookie
    assert site.world.operator.secret not in cookie


@pytest.mark.parametrize("key", ["", "pl_live_x", "nonsense", "pl_live_" + "x" * 200, "Bearer x"])
async def test_what_is_no_key_opens_nothing(site: Site, key: str) -> None:
    """It is said, and no cookie is set."""
    async with site.browser() as browser:
        answer = await browser.post("/ui/login", data={"key": key}, headers=OWN_PAGE)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


async def test_a_link_logs_in_once_and_only_by_its_button(site: Site) -> None:
    """Whoever looks at a link, as mail scanners do, does not use it up."""
    who = await site.world.services.authenticator.authenticate(f"Bearer {site.world.operator}".encode())
    code = (await open_session(site.world.registry, who, time.time(), link=True)).code
    async with site.browser() as browser:
        for _ in range(2):
            page = await browser.get("/ui/login", params={"code": code})
            assert "Open the dashboard" in page.text
        first = await browser.post("/ui/login", data={"code": code}, headers=OWN_PAGE)
        second = await browser.post("/ui/login", data={"code": code}, headers=OWN_PAGE)
        other = await browser.get("/ui/login", params={"code": HOSTILE})
    assert (first.status_code, second.status_code) == (303, 401)
    assert "onerror" not in other.text


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},  # another port of the same host, with whose forms the cookie goes
        {"sec-fetch-site": "none"},
        {"origin": "http://dashboard:81"},
        {"origin": "null"},
        {},
    ],
    ids=["another site", "another port", "no page", "another origin", "sandboxed frame", "no browser"],
)
async def test_a_form_of_another_page_changes_nothing(site: Site, headers: dict[str, str]) -> None:
    """Neither a login, nor an action, nor the end of the session, whatever the form has in it."""
    async with site.logged_in() as browser:
        csrf = csrf_of((await browser.get("/ui/nodes")).text)
        asked = len(site.api.asked)
        for path, form in (
            ("/ui/logout", {"csrf": csrf}),
            ("/ui/do/nodes/n1/drain", {"csrf": csrf}),
            ("/ui/login", {"key": str(site.world.operator)}),
        ):
            answer = await browser.post(path, data=form, headers=headers)
            assert answer.status_code == 403
            assert "set-cookie" not in answer.headers
    assert [method for method, _ in site.api.asked[asked:]] == []


async def test_an_action_needs_its_sessions_token(site: Site) -> None:
    """A form of an earlier session, or of nobody, is refused; the right one does what the API does."""
    async with site.logged_in() as browser, site.logged_in() as other:
        csrf = csrf_of((await other.get("/ui/nodes")).text)
        for wrong in ("", "0" * 32, csrf):
            answer = await browser.post("/ui/do/nodes/n1/drain", data={"csrf": wrong}, headers=OWN_PAGE)
            assert answer.status_code == 403
        assert not [path for _, path in site.api.asked if path.endswith("/drain")]
        own = csrf_of((await browser.get("/ui/nodes")).text)
        answer = await browser.post("/ui/do/nodes/n1/drain", data={"csrf": own}, headers=OWN_PAGE)
    assert answer.status_code == 404  # the API's word: there is no such node
    assert "There is no node n1" in answer.text
    assert [path for _, path in site.api.asked if path.endswith("/drain")] == ["/v1/nodes/n1/drain"]


async def test_who_may_not_act_does_not(site: Site) -> None:
    """A tenant's key sees its own pages, and no form of it reaches an operator's route."""
    async with site.logged_in(site.world.add_key("acme", "read")) as browser:
        page = await browser.get("/ui/functions")
        csrf = csrf_of(page.text)
        for action in ACTIONS:
            path = action.path.format(node="n1", app="shop")
            assert (await browser.post(path, data={"csrf": csrf}, headers=OWN_PAGE)).status_code == 403
        for listed in (one for one in PAGES if one.section is Section.OPERATOR and one.listed):
            assert f'href="{listed.path}"' not in page.text
            answer = await browser.get(listed.path)
            if answer.status_code == 303:  # where one is at home
                answer = await browser.get(answer.headers["location"])
                assert answer.status_code == 200
                continue
            assert answer.status_code == 403
            assert "may not see this page" in answer.text


async def test_a_session_that_has_ended_is_no_session(site: Site) -> None:
    """By logging out, at once; by its key's end, within two seconds."""
    async with site.logged_in() as browser, site.logged_in() as other:
        csrf = csrf_of((await browser.get("/ui/nodes")).text)
        answer = await browser.post("/ui/logout", data={"csrf": csrf}, headers=OWN_PAGE)
        assert "Max-Age=0" in answer.headers["set-cookie"]
        assert (await browser.get("/ui/nodes")).headers["location"] == "/ui/login"
        assert (await other.get("/ui/nodes")).status_code == 200

        await revoke_key(site.world.registry, "platform", site.world.operator.id, 0.0, by_operator=True, force=True)
        site.forget()
        assert (await other.get("/ui/nodes")).headers["location"] == "/ui/login"


async def test_a_tenants_text_stays_text(site: Site) -> None:
    """Whatever names and sentences are made of."""
    site.world.deploy(function())
    site.world.calls.listed = [
        {"id": HOSTILE, "tenant": "acme", "app": HOSTILE, "function": HOSTILE, "state": "ready", "node": "n1",
         "timeline": {HOSTILE: 5.0}, "slice": HOSTILE, "running": 0, "slots": 1, "age_s": 1.0, "version": "v"}
    ]  # fmt: skip
    async with site.logged_in() as browser:
        for path in LISTED:
            text = (await browser.get(path)).text
            assert "<img" not in text
            assert "</script><" not in text.replace("</script></head", "")
        assert "&lt;img" in (await browser.get("/ui/starts")).text


async def test_a_second_tenant_sees_nothing_of_the_first(site: Site) -> None:
    """Each address that the first one's pages have, asked for with the second one's session."""
    site.world.deploy(function("secretname"))
    site.world.calls.listed = [
        {"id": "ctr_secretname", "tenant": "acme", "app": "shop", "function": "secretname", "state": "ready",
         "node": "n1", "timeline": {"load": 1.0}}
    ]  # fmt: skip
    async with site.logged_in(site.world.key) as acme:
        assert "secretname" in (await acme.get("/ui/functions")).text
    async with site.logged_in(site.world.add_key("rival", "admin")) as rival:
        for path in (*LISTED, "/ui/nodes/n1", "/ui/functions?all=true", "/ui/fleet?all=true"):
            answer = await rival.get(path)
            assert "secretname" not in answer.text
            assert "acme" not in answer.text


async def test_no_address_of_anothers_pages_tells_what_is_there(site: Site) -> None:
    """Each address and topic that a tenant's pages have, asked for with another's session, is answered as the same one
    of names that there never were.
    """
    site.world.deploy(function(NAME))
    site.world.services.tracing.keeper.calls.add(kept_call(function=f"acme:shop.{NAME}", ref=f"shop.{NAME}@v1"))
    await site.world.services.jobs.store.create(dead_job(id=JOB, tenant="acme", function=f"acme:shop.{NAME}"))
    site.world.calls.listed = [
        {"id": f"ctr_{NAME}_1", "tenant": "acme", "app": "shop", "function": NAME, "state": "ready", "node": "n1",
         "timeline": {"load": 1.0}, "slice": "cpu:0", "running": 1, "slots": 2, "calls": 3, "age_s": 5.0, "idle_s": 0.0,
         "memory_bytes": 7, "reason": "", "breaker": "closed", "version": "ver_1"}
    ]  # fmt: skip
    async with site.logged_in(site.world.key) as acme:
        addresses = await crawled(acme)
    names = {NAME: "nosuchname12", CALL_ID: NO_CALL, JOB: NO_CALL, f"ctr_{NAME}_1": "ctr_nosuchname12_1"}
    assert sum(any(name in address for name in names) for address in addresses) >= 5, addresses
    async with site.logged_in(site.world.add_key("rival", "admin")) as rival:
        for address in addresses:
            other = address
            for name, instead in names.items():
                other = other.replace(name, instead)
            found, nothing = await rival.get(address), await rival.get(other)
            told = found.text
            for name, instead in names.items():
                told = told.replace(name, instead)
            assert (found.status_code, CSRF_TOKEN.sub("", told)) == (
                nothing.status_code, CSRF_TOKEN.sub("", nothing.text)
            ), address  # fmt: skip
            assert "acme" not in found.text, address


async def crawled(browser: httpx.AsyncClient) -> list[str]:
    """The addresses within the dashboard that pages lead to, from the listed ones on; forms' targets are none."""
    seen, waiting = set[str](), [*LISTED]
    while waiting:
        address = waiting.pop()
        if address in seen or len(seen) >= CRAWLED:
            continue
        seen.add(address)
        page = await browser.get(address)
        assert page.status_code < 500, address
        if "text/html" in page.headers.get("content-type", ""):
            waiting += [html.unescape(each) for each in HREF.findall(page.text)]
    return sorted(seen)


async def test_forms_are_bounded(site: Site) -> None:
    """In bytes and in kind."""
    async with site.browser() as browser:
        large = await browser.post("/ui/login", content=b"key=" + b"x" * FORM_BYTES, headers=OWN_PAGE | FORM)
        kind = await browser.post("/ui/login", json={"key": "x"}, headers=OWN_PAGE)
        many = await browser.post("/ui/login", content=b"a=1&" * 100, headers=OWN_PAGE | FORM)
        method = await browser.put("/ui/login")
    assert [one.status_code for one in (large, kind, many, method)] == [413, 415, 400, 405]


FORM = {"content-type": "application/x-www-form-urlencoded"}


async def test_files_are_kept_for_ever_by_their_digest(site: Site) -> None:
    """Another digest is not there, and nothing else of the folder is."""
    async with site.logged_in() as browser:
        page = (await browser.get("/ui/nodes")).text
        base = page.partition('data-assets="')[2].partition('"')[0]
        style = await browser.get(f"{base}/look.css")
        assert (style.status_code, "immutable" in style.headers["cache-control"]) == (200, True)
        for path in ("/ui/static/0000/look.css", f"{base}/vendor/manifest.json", f"{base}/../page.py", f"{base}/"):
            assert (await browser.get(path)).status_code in (404, 303)


AGAIN = '<meta http-equiv="refresh" content="5">'


async def test_where_no_gateway_answers_a_page_says_so(site: Site, world: World) -> None:
    """It asks for itself again, and is shown when one does; what was to be done is not done by itself later."""
    async with site.logged_in() as browser:
        csrf = csrf_of((await browser.get("/ui/nodes")).text)
        site.forget()
        site.api.down = True
        answer = await browser.get("/ui/nodes")
        assert answer.status_code == 503
        assert "No gateway answers" in answer.text
        assert AGAIN in answer.text
        done = await browser.post("/ui/do/nodes/n1/drain", data={"csrf": csrf}, headers=OWN_PAGE)
        assert (done.status_code, AGAIN in done.text) == (503, False)
        site.api.down = False
        assert (await browser.get("/ui/nodes")).status_code == 200


async def test_other_scopes_are_not_answered(site: Site) -> None:
    """Such as a lifespan, or a WebSocket."""

    async def nothing(*_: object) -> dict[str, str]:
        raise AssertionError

    app: DashboardApp = site.app
    await app({"type": "lifespan"}, nothing, nothing)  # type: ignore[arg-type]
