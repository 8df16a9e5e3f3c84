"""The application: logins, pages, their actions, the stream, and files."""

from __future__ import annotations

import asyncio
import gzip
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, urlencode

import msgspec
import structlog
from prometheus_client.core import Metric
from starlette.types import Message, Receive, Scope, Send

from pilotlight_core.model.api.seeing.session_api import CODE_PATTERN, NewSession
from pilotlight_gateway.dashboard.all_pages import ACTIONS
from pilotlight_gateway.dashboard.asset_files import FOR_EVER, AssetFiles
from pilotlight_gateway.dashboard.dashboard_counts import DashboardCounts, kind_of
from pilotlight_gateway.dashboard.issuer_logins import (
    BEGIN,
    CALLBACK,
    IssuerLogins,
    RefusedLogin,
    begun_cookie,
    forget_begun,
)
from pilotlight_gateway.dashboard.live_stream import LaggingClient, LiveStream, StreamSlots, topics_of
from pilotlight_gateway.dashboard.login_pages import entered_body, login_body, message_body
from pilotlight_gateway.dashboard.login_rates import LoginRates, LoginRefused
from pilotlight_gateway.dashboard.page_drawings import PageDrawings
from pilotlight_gateway.dashboard.page_frame import whole_page
from pilotlight_gateway.dashboard.page_parts.block_markup import blocks_markup
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiAnswer, ApiProblem, GatewayApi
from pilotlight_gateway.dashboard.page_parts.page import PageAction, filled
from pilotlight_gateway.dashboard.page_parts.viewers import Viewer, Viewers
from pilotlight_gateway.dashboard.page_routes import find_page
from pilotlight_gateway.dashboard.request_rules import (
    ALWAYS,
    FORM_BYTES,
    PAGE_HEADERS,
    header_of,
    is_known_form,
    is_of_own_page,
    read_form,
    session_token,
    set_cookie,
)

HOME, LOGIN = "/ui/overview", "/ui/login"
FORM_WITHIN_S, QUERY_FIELDS = 10.0, 64
LONGEST_COOKIE_S = 8 * 3_600
"""Whatever this machine's clock says of a session's end."""
SILENT = 503
"""No gateway answers, or none can."""
PACKED_FROM = 1_000
"""Bytes from which on a page is packed."""
FORM = "application/x-www-form-urlencoded"
OUR_KEY = "pl_live_"
CODE = re.compile(CODE_PATTERN)

log = structlog.get_logger(__name__)
HeaderList = list[tuple[bytes, bytes]]


@dataclass(frozen=True, kw_only=True)
class PageReply:
    """A whole answer."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One request of a browser."""

    method: str
    path: str
    query: dict[str, str]
    addresses: list[str]
    """The topics that a stream asks for."""
    headers: HeaderList
    address: str = ""
    """Where it comes from."""
    form: dict[str, str] = field(default_factory=dict)


class RefusedVisit(Exception):
    """A request that is answered by a status and a sentence."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class DashboardApp:
    """An ASGI application over a client of the gateways."""

    def __init__(
        self,
        client: GatewayApi,
        drawings: PageDrawings,
        assets: AssetFiles,
        *,
        counts: DashboardCounts | None = None,
        logins: LoginRates | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        issuers: IssuerLogins | None = None,
    ) -> None:
        """`issuers`: where people log in too; None: by keys alone."""
        self._issuers = issuers
        self.counts = counts or DashboardCounts()
        self._logins = logins or LoginRates(clock)
        self._clock = clock
        self._client = client
        self._drawings = drawings
        self._assets = assets
        self._viewers = Viewers(client, clock)
        self._slots = StreamSlots()
        self._wall = wall

    def collect(self) -> Iterator[Metric]:
        """A `MetricSource`."""
        return self.counts.collect(lambda: len(self._viewers), lambda: self._slots.held)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        kind, begun_at = kind_of(scope["path"], scope["method"]), self._clock()

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.counts.request_answered(kind, message["status"], self._clock() - begun_at)
            await send(message)

        await self._answer(scope, receive, counted)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: HeaderList = scope["headers"]
        path = scope["raw_path"].decode("latin-1").partition("?")[0]
        address = scope["client"][0] if scope.get("client") else ""
        visit = Visit(
            method=scope["method"], path=path, query={}, addresses=[], headers=headers, address=address
        )  # fmt: skip
        try:
            visit = _with_query(visit, scope["query_string"].decode("latin-1"))
            if visit.path == "/ui/events":
                await self._stream(visit, receive, send)
                return
            if visit.method == "POST":
                visit = _with_form(visit, await _body_of(headers, receive))
            reply = await self._reply(visit)
        except RefusedVisit as refused:
            reply = self._message(refused.status, refused.text)
        except ApiProblem as problem:
            reply = self._message(problem.status or 503, problem.detail, again=visit.method == "GET")
        except LaggingClient:
            raise
        except Exception:
            log.exception("a page could not be made", path=visit.path)
            reply = self._message(500, "This page could not be made. The dashboard's log says why.")
        await _send_reply(reply, visit, send)

    async def _reply(self, visit: Visit) -> PageReply:
        if visit.method not in ("GET", "HEAD", "POST"):
            return PageReply(status=405, headers=((b"allow", b"GET, HEAD, POST"),))
        if visit.path.startswith("/ui/static/"):
            return self._asset(visit)
        if visit.path == "/healthz":
            return PageReply(status=200, body=b"{}", headers=((b"content-type", b"application/json"),))
        if visit.path in ("", "/", "/ui", "/ui/", "/favicon.ico"):
            return _to(HOME)
        if visit.method == "POST":
            return await self._post(visit)
        if visit.path == LOGIN:
            return await self._show_login(visit)
        if visit.path.startswith((BEGIN, CALLBACK)) and self._issuers is not None:
            return await self._log_in_at_issuer(visit, self._issuers)
        viewer = await self._viewers.find(session_token(visit.headers))
        if viewer is None:
            return _to(LOGIN)
        return await self._show_page(visit, viewer)

    # -- pages ---------------------------------------------------------------------------------------------------

    async def _show_page(self, visit: Visit, viewer: Viewer) -> PageReply:
        found = self._drawings.find(visit.path)
        if found is None:
            return self._message(404, "There is no such page.", viewer)
        page, words = found
        if page.path == HOME and not viewer.may(*page.scopes):
            return _to("/ui/functions")
        query = visit.query
        topic = _address(visit.path, query)
        drawing = await self._drawings.draw(viewer, page, words, query, topic)
        title = page.title if page.listed else f"{page.title} {' '.join(words.values())}"
        body = whole_page(
            title=title, body=blocks_markup(drawing.blocks, viewer.csrf), assets=self._assets.base, viewer=viewer,
            pages=self._drawings.pages, present=page, topic=topic if page.live else "",
        )  # fmt: skip
        return PageReply(status=drawing.status, body=body, headers=PAGE_HEADERS)

    def _message(self, status: int, text: str, viewer: Viewer | None = None, *, again: bool = False) -> PageReply:
        """`again`: a page that is asked for by itself once more, if nobody could answer."""
        said = message_body(text, logged_in=viewer is not None, again=again and status == SILENT)
        body = whole_page(
            title="Not shown" if status >= 400 else "Pilotlight", body=said, assets=self._assets.base, viewer=viewer,
            pages=self._drawings.pages,
        )  # fmt: skip
        return PageReply(status=status, body=body, headers=PAGE_HEADERS)

    def _asset(self, visit: Visit) -> PageReply:
        name = visit.path.removeprefix("/ui/static/").partition("/")[2]
        file = self._assets.find(name) if visit.path.startswith(f"{self._assets.base}/") else None
        if file is None:
            return PageReply(status=404)
        headers: HeaderList = [(b"content-type", file.kind.encode()), (b"cache-control", FOR_EVER.encode())]
        if file.packed is not None and "gzip" in (header_of(visit.headers, b"accept-encoding") or ""):
            packing = ((b"content-encoding", b"gzip"), (b"vary", b"accept-encoding"))
            return PageReply(status=200, body=file.packed, headers=(*headers, *packing))
        return PageReply(status=200, body=file.plain, headers=tuple(headers))

    async def _stream(self, visit: Visit, receive: Receive, send: Send) -> None:
        viewer = await self._viewers.find(session_token(visit.headers))
        if viewer is None or visit.method != "GET":
            raise RefusedVisit(401, "Log in first.")
        topics = topics_of(visit.addresses, self._drawings)
        with self._slots.holding(viewer) as has_room:
            if not has_room:
                raise RefusedVisit(429, "There are as many live pages as there may be: close some windows.")
            await LiveStream(viewer, topics, self._drawings, self._viewers).run(receive, send)

    # -- forms ---------------------------------------------------------------------------------------------------

    async def _post(self, visit: Visit) -> PageReply:
        if not is_of_own_page(visit.headers):
            raise RefusedVisit(403, "Another site's page sent this form, so nothing was done.")
        if visit.path == LOGIN:
            return await self._log_in(visit)
        token = session_token(visit.headers)
        viewer = await self._viewers.find(token)
        if viewer is None:
            return _to(LOGIN)
        if not is_known_form(viewer.csrf, visit.form.get("csrf", "")):
            raise RefusedVisit(403, "This form is of an earlier session: go back, load the page again, and repeat it.")
        if visit.path == "/ui/logout":
            return await self._log_out(viewer)
        found = find_page(ACTIONS, visit.path)
        if found is None:
            raise RefusedVisit(404, "There is no such action.")
        return await self._act(visit, viewer, *found)

    async def _act(self, visit: Visit, viewer: Viewer, action: PageAction, words: dict[str, str]) -> PageReply:
        if not viewer.may(*action.scopes):
            raise RefusedVisit(403, f"Your key may not do this: it needs the scope {' or '.join(action.scopes)}.")
        answer = await self._client.ask(
            action.method, filled(action.api_path, words), viewer.token, action.body(visit.form)
        )
        answer.value()
        return _to(filled(action.back, words))

    async def _show_login(self, visit: Visit) -> PageReply:
        code = visit.query.get("code", "")
        known = code if _is_code(code) else ""
        if not known and await self._viewers.find(session_token(visit.headers)) is not None:
            return _to(HOME)
        issuers = await self._issuers.names() if self._issuers is not None and not known else []
        body = whole_page(title="Log in", body=login_body(known, issuers=issuers), assets=self._assets.base)
        return PageReply(status=200, body=body, headers=PAGE_HEADERS)

    async def _log_in(self, visit: Visit) -> PageReply:
        code, key = visit.form.get("code", ""), visit.form.get("key", "").strip()
        is_key = key.startswith(OUR_KEY) and len(key) <= 128 and key.isascii() and key.isprintable()
        if not _is_code(code) and not is_key:
            return self._login_refused("That is no API key: it begins with pl_live_.")
        try:
            async with self._logins.taking(visit.address):
                if _is_code(code):
                    answer = await self._client.ask("POST", "/v1/sessions/exchange", "", {"code": code})
                else:
                    answer = await self._client.ask("POST", "/v1/sessions", key, {})
        except LoginRefused as refused:
            return self._login_refused(str(refused), 429)
        if answer.status >= 400:
            return self._login_refused(answer.problem().detail)
        return _to(HOME, self._session_of(answer))

    async def _log_in_at_issuer(self, visit: Visit, logins: IssuerLogins) -> PageReply:
        """Send the browser to an issuer, or take what that has sent it back with."""
        host = header_of(visit.headers, b"host") or ""
        try:
            if visit.path != CALLBACK:
                page, kept = await logins.begin(visit.path.removeprefix(BEGIN), host)
                return _to(page, kept)
            cookie = begun_cookie(header_of(visit.headers, b"cookie") or "")
            async with self._logins.taking(visit.address):
                token = await logins.finish(urlencode(visit.query), cookie, host)
                answer = await self._client.ask("POST", "/v1/sessions", token, {})
        except LoginRefused as refused:
            return self._login_refused(str(refused), 429)
        except RefusedLogin as refused:
            return replace(self._login_refused(str(refused)), headers=(*PAGE_HEADERS, forget_begun()))
        if answer.status >= 400:
            return replace(self._login_refused(answer.problem().detail), headers=(*PAGE_HEADERS, forget_begun()))
        # A redirect from here would still be the issuer's: browsers send no strict cookie along it.
        body = whole_page(title="Logged in", body=entered_body(), assets=self._assets.base)
        return PageReply(status=200, body=body, headers=(*PAGE_HEADERS, self._session_of(answer), forget_begun()))

    def _session_of(self, answer: ApiAnswer) -> tuple[bytes, bytes]:
        """The cookie of a session that a gateway has opened."""
        try:
            made = msgspec.json.decode(answer.body, type=NewSession)
        except msgspec.DecodeError:
            raise ApiProblem(0, "internal", "A gateway of another release answered: it opens no sessions.") from None
        return set_cookie(made.token, min(LONGEST_COOKIE_S, max(1, int(made.expires_at - self._wall()))))

    def _login_refused(self, text: str, status: int = 401) -> PageReply:
        body = whole_page(title="Log in", body=login_body("", text), assets=self._assets.base)
        return PageReply(status=status, body=body, headers=PAGE_HEADERS)

    async def _log_out(self, viewer: Viewer) -> PageReply:
        self._viewers.forget(viewer.token)
        await self._client.ask("DELETE", "/v1/sessions/current", viewer.token)
        clears = (b"clear-site-data", b'"cache", "storage"')
        return _to(LOGIN, set_cookie("", 0), clears)


def _is_code(text: str) -> bool:
    return bool(CODE.fullmatch(text))


def _address(path: str, query: dict[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _to(path: str, *more: tuple[bytes, bytes]) -> PageReply:
    return PageReply(status=303, headers=((b"location", path.encode()), (b"cache-control", b"no-store"), *more))


def _with_query(visit: Visit, text: str) -> Visit:
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=QUERY_FIELDS)
    except ValueError:
        raise RefusedVisit(400, "This address has too many words.") from None
    return replace(visit, query=dict(pairs), addresses=[value for name, value in pairs if name == "page"])


def _with_form(visit: Visit, body: bytes) -> Visit:
    if (header_of(visit.headers, b"content-type") or "").partition(";")[0].strip() != FORM:
        raise RefusedVisit(415, "This takes forms only.")
    try:
        form = read_form(body)
    except ValueError:
        raise RefusedVisit(400, "This form cannot be read.") from None
    return replace(visit, form=form)


async def _body_of(headers: HeaderList, receive: Receive) -> bytes:
    """A form's body, within its bounds."""
    length = header_of(headers, b"content-length") or "0"
    if not length.isdigit() or int(length) > FORM_BYTES:
        raise RefusedVisit(413, f"This takes forms of at most {FORM_BYTES} bytes.")
    body = bytearray()
    try:
        async with asyncio.timeout(FORM_WITHIN_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RefusedVisit(400, "The form broke off.")
                body += message.get("body", b"")
                if len(body) > FORM_BYTES:
                    raise RefusedVisit(413, f"This takes forms of at most {FORM_BYTES} bytes.")
                if not message.get("more_body"):
                    return bytes(body)
    except TimeoutError:
        raise RefusedVisit(408, "The form did not arrive in time.") from None


async def _send_reply(reply: PageReply, visit: Visit, send: Send) -> None:
    headers, body = [*reply.headers, *ALWAYS], reply.body
    packs = reply.headers is PAGE_HEADERS and len(body) >= PACKED_FROM
    if packs and "gzip" in (header_of(visit.headers, b"accept-encoding") or ""):
        body = gzip.compress(body, 5, mtime=0)
        headers += [(b"content-encoding", b"gzip"), (b"vary", b"accept-encoding")]
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if visit.method == "HEAD" else body})
