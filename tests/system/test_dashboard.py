"""The dashboard of a real platform in a real browser, which CI has not: `make test-long` runs it where chromium is."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from pilotlight_gateway.dashboard.all_pages import PAGES
from tests.browser.accessibility import violations
from tests.fixtures.identity_provider import API, IdentityProvider
from tests.system.support.platform import Platform, make_tenant
from tests.system.support.platform import platform as run_platform
from tests.system.support.sample_apps import APPS
from tools.headless_browser import Browser, Tab, find_browser

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_browser() is None, reason="there is no chromium: apt-get install chromium"),
]
LISTED = [page.path for page in PAGES if page.listed]
LIVE = "document.getElementById('live').textContent.startsWith('Live')"
TABS = 8
FIRST_CALL = "document.querySelector('#calls tbody a').getAttribute('href')"


@pytest.fixture
def anyio_backend() -> str:
    """The browser is spoken to over asyncio."""
    return "asyncio"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform with a dashboard and GPUs in software."""
    folder = tmp_path_factory.mktemp("shown")
    options = ("--fake-gpus", "2xH100:mig,1xT4", "--blanks", "1")
    with run_platform(folder, *options, env={"PILOTLIGHT_DASHBOARD": "on"}, executed=True) as running:
        running.deploy(APPS / "calls" / "app.py")
        yield running


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    """One that knows nothing."""
    async with Browser.started() as started:
        yield started


def url_of(platform: Platform) -> str:
    return str(json.loads(platform.ready_file.read_text())["dashboard_url"])


async def log_in(tab: Tab, platform: Platform, key: str = "") -> None:
    await tab.open(f"{url_of(platform)}/ui/login")
    await tab.submit("form.login", key=key or platform.key)
    await tab.wait_for("location.pathname != '/ui/login'")


async def test_the_printed_link_logs_in_once(shown: Platform, browser: Browser) -> None:
    """By its button; no script has the session, and the link is worth nothing afterwards."""
    printed = (shown.ready_file.parent / "up.log").read_text()
    found = re.search(r"The dashboard: (\S+)", printed)
    assert found is not None, printed
    async with browser.tab() as tab, browser.tab() as other:
        await tab.open(found[1])
        await tab.submit("form.login")
        assert await tab.evaluate("location.pathname") == "/ui/overview"
        (cookie,) = await tab.cookies()
        assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == ("__Host-pilotlight", True, "Strict")
        assert await tab.evaluate("document.cookie") == ""
        await other.open(found[1])
        await other.submit("form.login")
        assert "was used" in await other.evaluate("document.querySelector('[role=alert]').textContent")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_every_page_is_for_everybody_and_breaks_no_policy(shown: Platform, browser: Browser, dark: bool) -> None:
    """axe finds nothing, and it does find what is planted; the console says nothing in red."""
    async with browser.tab(dark=dark) as tab:
        await tab.open(f"{url_of(shown)}/ui/login")
        assert await violations(tab) == []
        await tab.evaluate("document.querySelector('label').remove()")
        assert [one["id"] for one in await violations(tab)] == ["label"]
        await log_in(tab, shown)
        for path in (*LISTED, "/ui/nodes/local"):
            await tab.open(f"{url_of(shown)}{path}")
            if next((page.live for page in PAGES if page.path == path), True):
                await tab.wait_for(LIVE)
            assert await violations(tab) == [], path
        assert tab.faults == []
        await tab.evaluate("document.body.focus()")
        await tab.send("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
        assert await tab.evaluate("document.activeElement.textContent") == "Skip to the page"


async def test_a_cold_start_arrives_while_one_looks_in_eight_tabs(shown: Platform, browser: Browser) -> None:
    """In each of them, without a load, over one connection; the drawing of the fleet shows whose it is."""
    async with browser.tab() as first:
        await log_in(first, shown)
        await first.open(f"{url_of(shown)}/ui/functions")
        tabs = [first]
        managers = [browser.tab(context=first.context) for _ in range(TABS - 1)]
        for number, manager in enumerate(managers):
            tab = await manager.__aenter__()
            await tab.open(f"{url_of(shown)}/ui/{'fleet' if number % 2 else 'functions'}")
            tabs.append(tab)
        for tab in tabs:
            await tab.wait_for(LIVE)
            await tab.evaluate("window.untouched = true")
        calling = asyncio.create_task(asyncio.to_thread(shown.output, "calls.naps", seconds=8.0, name="x"))
        for tab in tabs:
            if "fleet" in await tab.evaluate("location.pathname"):
                await tab.wait_for("document.querySelectorAll('#drawing .t0,.t1,.t2,.t3,.t4,.t5,.t6,.t7').length > 0")
            else:
                cell = "document.querySelector('#functions tr[data-key=\"calls.naps\"]')"
                await tab.wait_for(f"{cell}?.cells[7].textContent === '1'")
            assert await tab.evaluate("window.untouched")
        assert await calling == "x"
        took = await first.evaluate("performance.getEntriesByName('update').map(one => one.duration)")
        assert took
        for manager in managers:
            await manager.__aexit__(None, None, None)


async def test_a_second_tenant_sees_nothing_of_the_first(shown: Platform, browser: Browser) -> None:
    """Neither on its own pages, nor at the addresses of the operator's."""
    key = make_tenant(shown, "rival")
    async with browser.tab() as tab:
        await log_in(tab, shown, key)
        for path in (*LISTED, "/ui/nodes/local"):
            await tab.open(f"{url_of(shown)}{path}")
            text = await tab.evaluate("document.documentElement.outerHTML")
            for secret in ("calls.naps", "default", "H100", "local-a"):
                assert secret not in text, path


async def test_forms_of_other_origins_change_nothing(shown: Platform, browser: Browser) -> None:
    """Another port of the same host, with whose forms the browser sends the cookie, and a frame."""
    async with browser.tab() as tab:
        await log_in(tab, shown)
        async with browser.tab(context=tab.context) as evil:
            await evil.open(f"{shown.url}/healthz")
            form = (
                "const f = document.createElement('form'); f.method = 'POST'; "
                f"f.action = '{url_of(shown)}/ui/do/nodes/local/drain'; document.documentElement.append(f); f.submit()"
            )
            await evil.evaluate(form)
            await evil.wait_for("document.body?.textContent.includes('Another site')")
            await evil.open(f"{shown.url}/healthz")
            await evil.evaluate(
                "new Promise(done => { const f = document.createElement('iframe'); f.onload = done; "
                f"f.src = '{url_of(shown)}/ui/nodes'; document.documentElement.append(f) }})"
            )
            assert any("frame" in fault.lower() for fault in evil.faults)
        state = shown.http.get("/v1/nodes/local").json()["state"]
        assert state == "open"


async def test_its_death_loses_no_call_and_its_pages_go_on(shown: Platform, browser: Browser) -> None:
    """It is started again, and streams come back without a load and without a login."""
    async with browser.tab() as tab:
        await log_in(tab, shown)
        await tab.open(f"{url_of(shown)}/ui/functions")
        await tab.wait_for(LIVE)
        await tab.evaluate("window.untouched = true")
        answers: list[Any] = []

        def call_on() -> None:
            answers.extend(shown.output("calls.echo", value=number) for number in range(60))

        calling = asyncio.create_task(asyncio.to_thread(call_on))
        died = shown.signal("dashboard", signal.SIGKILL)
        await tab.wait_for(f"!{LIVE}")
        await tab.wait_for(LIVE)
        await calling
        assert answers == list(range(60))
        assert shown.pids["dashboard"] not in (0, died)
        assert await tab.evaluate("window.untouched")


async def test_a_gateways_death_takes_no_page_away(shown: Platform, browser: Browser) -> None:
    """Neither one that is looked at, which goes on by itself without a load, nor one that is opened meanwhile."""
    async with browser.tab() as tab:
        await log_in(tab, shown)
        await tab.open(f"{url_of(shown)}/ui/functions")
        await tab.wait_for(LIVE)
        await tab.evaluate("window.untouched = true")
        died = shown.signal("gateway", signal.SIGSTOP)
        async with browser.tab(context=tab.context) as late:
            await tab.wait_for(f"!{LIVE}", 60.0)
            assert "no gateway answers" in await tab.evaluate("document.getElementById('live').textContent")
            await late.open(f"{url_of(shown)}/ui/rollouts")
            assert "No gateway answers" in await late.evaluate("document.body.textContent")
            os.kill(died, signal.SIGKILL)
            await tab.wait_for(LIVE, 60.0)
            await tab.wait_for("document.getElementById('functions') !== null")
            assert await tab.evaluate("window.untouched")
            await late.wait_for(f"document.getElementById('rollouts') !== null && {LIVE}", 60.0)


async def test_a_person_logs_in_at_an_issuer(
    shown: Platform, browser: Browser, identity_provider: IdentityProvider
) -> None:
    """By the issuer's own pages; the session ends when the issuer is no more on record."""
    shown.cli(
        "issuer", "set", "corp", identity_provider.url, "--audience", API, "--client-id", "pilotlight-cli",
        "--tenant-claim", "org", "--tenant", "acme-corp=default", "--group", "engineers=invoke,read",
        "--parameter", f"resource={API}",
    )  # fmt: skip
    async with browser.tab() as tab:
        await tab.open(f"{url_of(shown)}/ui/login")
        await tab.evaluate("document.querySelector('a[href=\"/ui/login/with/corp\"]').click()")
        for _ in range(2):  # who one is, and whether one agrees
            await tab.wait_for("location.pathname.startsWith('/interaction/') && !window.filled")
            await tab.evaluate(FILL)
        await tab.wait_for("location.pathname === '/ui/functions'")
        assert [one["name"] for one in await tab.cookies() if one["name"].startswith("__Host-")] == [
            "__Host-pilotlight"
        ]
        assert "Overview" not in await tab.evaluate("document.querySelector('header').textContent")
        shown.cli("issuer", "remove", "corp")
        await tab.wait_for("location.pathname === '/ui/login'")


FILL = """
window.filled = true;
for (const field of document.querySelectorAll('form input'))
  if (['text', 'password'].includes(field.type)) field.value = 'ada:acme-corp:engineers';
document.querySelector('form button[type=submit], form button').click();
"""


async def test_a_calls_waterfall_and_its_lines_as_they_come(shown: Platform, browser: Browser) -> None:
    """A failed call leads to where its time went, and to what it printed; hostile text stays text."""
    hostile = "<img src=x onerror=document.title=1>"
    assert shown.call("calls.hopeless", name=hostile).is_error
    async with browser.tab() as tab:
        await log_in(tab, shown)
        await tab.open(f"{url_of(shown)}/ui/calls?function=calls.hopeless&kept=error")
        await tab.wait_for("document.querySelectorAll('#calls tbody a').length > 0")
        await tab.open(f"{url_of(shown)}{await tab.evaluate(FIRST_CALL)}")
        assert await tab.evaluate("document.querySelectorAll('#waterfall rect').length") > 0
        assert await violations(tab) == []
        printed = "[...document.querySelectorAll('#links a')].find(one => one.textContent === 'What it printed')"
        await tab.open(f"{url_of(shown)}{await tab.evaluate(f'{printed}.getAttribute(`href`)')}")
        await tab.wait_for(f"document.getElementById('lines').textContent.includes({json.dumps(f'ran {hostile}')})")
        await tab.open(f"{url_of(shown)}/ui/logs?function=calls.naps")
        await tab.wait_for(LIVE)
        await tab.evaluate("window.untouched = true")
        await asyncio.to_thread(shown.output, "calls.naps", seconds=0.0, name=hostile)
        await tab.wait_for(f"document.getElementById('lines').textContent.includes({json.dumps(f'ran {hostile}')})")
        assert await tab.evaluate("window.untouched && document.images.length === 0")
        await tab.open(f"{url_of(shown)}/ui/functions/calls.naps")
        await tab.wait_for(LIVE)
        assert await violations(tab) == []
        assert tab.faults == []
