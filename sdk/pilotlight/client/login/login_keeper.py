"""Keeps a login's token good: it is renewed shortly before its end, once for all processes of its user."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from pilotlight.client.login.issued_tokens import renewed
from pilotlight.client.login.issuer_client import IssuerClient, IssuerUnreachable, LoginFailed
from pilotlight.client.login.saved_login import SavedLogin, load_login, save_login

EARLY_S = 30.0
LOCK_S = 30.0
LOCK_EVERY_S = 0.1


class LoginKeeper:
    """The login in `file`, as long as it is one at the platform `url`. `wall` is unix seconds."""

    def __init__(self, file: Path, url: str, wall: Callable[[], float] = time.time) -> None:
        self._file = file
        self._url = url
        self._wall = wall
        self._known: SavedLogin | None = None
        self._renewing = asyncio.Lock()

    async def bearer(self) -> str:
        """Return a token that is good for now.

        Raises:
            LoginFailed: nobody is logged in any more.
            IssuerUnreachable: it has to be renewed, and the issuer does not answer.
        """
        known = self._known
        if known is not None and self._is_good(known, EARLY_S):
            return known.token
        async with self._renewing:
            self._known = await self._current()
            return self._known.token

    async def _current(self) -> SavedLogin:
        login = self._read()
        if self._is_good(login, EARLY_S):
            return login
        async with locked_login(self._file):
            login = self._read()  # another process may have renewed it meanwhile
            return login if self._is_good(login, EARLY_S) else await self._renewed(login)

    async def _renewed(self, login: SavedLogin) -> SavedLogin:
        if not login.refresh_token:
            if self._is_good(login, 0.0):
                return login
            raise LoginFailed("The login has expired, and its issuer gives none that can be renewed.")
        form = {"grant_type": "refresh_token", "refresh_token": login.refresh_token, "client_id": login.client_id}
        try:
            async with IssuerClient(login.issuer_ca_file) as issuer:
                answer = await issuer.post(login.token_endpoint, form)
        except IssuerUnreachable:
            if self._is_good(login, 0.0):
                return login
            raise
        if answer.error == "invalid_grant":
            raise LoginFailed("The login has ended: its issuer does not renew it.")
        fresh = renewed(login, answer, self._wall())
        present = self._read()  # who has logged out, or in anew, meanwhile has the last word
        if present.id != login.id:
            return present
        save_login(self._file, fresh)
        return fresh

    def _read(self) -> SavedLogin:
        login = load_login(self._file)
        if login is None:
            raise LoginFailed("Nobody is logged in any more.")
        if login.url != self._url:  # the file was written anew while this process ran
            raise LoginFailed(f"You are logged in at {login.url} now, and no more at {self._url}.")
        return login

    def _is_good(self, login: SavedLogin, early_s: float) -> bool:
        return self._wall() < login.expires_at - early_s


@asynccontextmanager
async def locked_login(login_file: Path) -> AsyncIterator[None]:
    """Hold a lock among this user's processes: a refresh token may be good once, and who logs out stays out.

    Raises:
        LoginFailed: another process holds it for too long.
    """
    file = login_file.with_suffix(".lock")
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            async with asyncio.timeout(LOCK_S):
                while not _is_taken(descriptor):  # noqa: ASYNC110 - a file's lock rings no bell
                    await asyncio.sleep(LOCK_EVERY_S)
        except TimeoutError:
            raise LoginFailed(f"Another process has renewed the login for {LOCK_S:g} s; it holds {file}.") from None
        yield
    finally:
        os.close(descriptor)


def _is_taken(descriptor: int) -> bool:
    import fcntl  # of Unix

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
