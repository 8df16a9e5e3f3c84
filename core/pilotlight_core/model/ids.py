"""Names and identifiers, and what can be read from them.

Everything that becomes part of a NATS subject, a path or a file name passes through `check_name` first, so that no
tenant can smuggle in a separator, a wildcard or a parent folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from pilotlight_core.model.errors import BadInput, UnknownCall

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,62}")
"""Names of tenants, apps, functions, methods and nodes: one NATS token, one file name."""
END = r"$(?!\n)"
"""The end of a pattern in a schema: in Python `$` alone allows a line break to follow."""
NAME_PATTERN = f"^{NAME.pattern}{END}"
REF_PATTERN = f"^({NAME.pattern}:)?{NAME.pattern}[.]{NAME.pattern}(@{NAME.pattern})?{END}"
FUNCTION_PATTERN = f"^({NAME.pattern}:)?{NAME.pattern}[.]{NAME.pattern}{END}"
CONTAINER_PATTERN = f"^[A-Za-z0-9_.~-]{{1,128}}{END}"
MONTH_PATTERN = f"^20[0-9]{{2}}-(0[1-9]|1[0-2]){END}"
"""Schema patterns of a name, a ref, a ref without a pin, a container's id, and a month."""
CLIENT_CALL_ID = re.compile(r"cid_[A-Za-z0-9_-]{8,60}")
CALL_ID = re.compile(r"call_([a-z0-9-]{1,24})_([0-9a-z]{1,13})_([0-9a-z]{20})")
TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,31}")
TAG_VALUE = re.compile(r"[A-Za-z0-9._:/@+-]{1,64}")
MOST_TAGS = 10
TAGS_CHARACTERS = 512
"""Of all names and values together: every interval of usage has them, and a message is bounded."""
LENGTH = 20
SECOND_DIGITS = 7
"""Of a call id's token: the second of its making; the 13 random ones behind them hold 67 bits."""
REF = re.compile(r"(?:(?P<tenant>[^:.@]+):)?(?P<app>[^:.@]+)\.(?P<function>[^:.@]+)(?:@(?P<pin>[^:.@]+))?")
VERSION_PIN = re.compile(r"v([1-9][0-9]{0,8})")

_DIGITS = bytes(ord(ALPHABET[byte % 36]) for byte in range(256))
_BEYOND = bytes(range(252, 256))
_pool: list[str] = []
os.register_at_fork(after_in_child=_pool.clear)  # a parent and its child must not issue the same tokens


def token(length: int = LENGTH) -> str:
    """A random base-36 string; 20 characters hold 103 bits."""
    if length != LENGTH:
        import secrets  # here, since it loads OpenSSL, which `import pilotlight` need not pay for

        return "".join(secrets.choice(ALPHABET) for _ in range(length))
    try:
        return _pool.pop()
    except IndexError:
        # One system call makes tokens for a hundred calls. Bytes beyond 7 x 36 are dropped, so that all digits are
        # equally likely.
        digits = os.urandom(LENGTH * 128).translate(_DIGITS, _BEYOND).decode()
        _pool.extend(digits[start : start + LENGTH] for start in range(LENGTH, len(digits) - LENGTH, LENGTH))
        return digits[:LENGTH]


def base36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = ALPHABET[digit] + digits
        if not number:
            return digits


def check_name(name: str, field: str) -> str:
    """Return `name` if it is valid.

    Raises:
        BadInput: naming `field` and the rule.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise BadInput(
            f"{field} {name!r} is not a name: expected 1 to 63 letters, digits, '_' or '-', not starting with '-'.",
            field=field,
        )
    return name


def tags_fault(tags: Mapping[str, str]) -> str:
    """Why these cannot be the tags of usage, naming the first that is wrong; "": they can."""
    if len(tags) > MOST_TAGS:
        return f"{len(tags)} tags are too many: expected at most {MOST_TAGS}"
    for name, value in tags.items():
        if not isinstance(name, str) or not TAG.fullmatch(name):
            return f"{name!r:.100} is no name: expected 1 to 32 letters, digits, '_' or '-', not starting with '-'"
        if not isinstance(value, str) or not TAG_VALUE.fullmatch(value):
            return f"{name} is {value!r:.100}: expected 1 to 64 letters, digits or characters of ._:/@+-"
    if sum(len(name) + len(value) for name, value in tags.items()) > TAGS_CHARACTERS:
        return f"they are too long: expected names and values of at most {TAGS_CHARACTERS} characters together"
    return ""


class CallId(msgspec.Struct, frozen=True):
    """The parts of a call's id: the region it is in, the epoch of the gateway that owns it, and what is its own."""

    region: str
    epoch: int
    token: str

    def __str__(self) -> str:
        return f"call_{self.region}_{base36(self.epoch)}_{self.token}"


def new_call_id(region: str, epoch: int, at: float) -> str:
    """The id of a call that begins at the unix second `at`.

    Ids rise with time, so that a table by id grows at its end: a row in a random place of a large one costs ten times
    as much. Who has an id knows when the call began, and can guess no other.
    """
    return _head_of(region, epoch, int(at)) + token()[SECOND_DIGITS:]


@lru_cache(64)
def _head_of(region: str, epoch: int, second: int) -> str:
    return f"call_{region}_{base36(epoch)}_{base36(second):0>{SECOND_DIGITS}}"


def parse_call_id(text: str) -> CallId:
    """The parts of a call id.

    Raises:
        UnknownCall: if it is not one.
    """
    found = CALL_ID.fullmatch(text)
    if found is None:
        raise UnknownCall(f"{text!r} is not a call id: expected call_REGION_EPOCH_TOKEN.")
    return CallId(region=found[1], epoch=int(found[2], 36), token=found[3])


class Ref(msgspec.Struct, frozen=True):
    """The address of a function: `app.function`, `tenant:app.function`, `app.function@v7`, `app.function@ver_…`."""

    app: str
    function: str
    tenant: str | None = None
    pin: str | None = None

    @property
    def version_number(self) -> int | None:
        """7 for the pin `v7`, None for a version's id or no pin."""
        found = VERSION_PIN.fullmatch(self.pin or "")
        return int(found[1]) if found else None

    def __str__(self) -> str:
        owner = f"{self.tenant}:" if self.tenant else ""
        pin = f"@{self.pin}" if self.pin else ""
        return f"{owner}{self.app}.{self.function}{pin}"


def parse_ref(text: str) -> Ref:
    found = REF.fullmatch(text)
    if found is None:
        raise BadInput(f"{text!r} is not a function: expected app.function, optionally with @v7.", field="ref")
    parts = found.groupdict()
    for field, value in parts.items():
        if value is not None:
            check_name(value, field)
    return Ref(app=parts["app"], function=parts["function"], tenant=parts["tenant"], pin=parts["pin"])
