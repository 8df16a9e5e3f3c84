"""docs/security.md lists every test of security with its promise, and no test that is not there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
ROW = re.compile(r"^\| (.+) \| (.+) \|$", re.MULTILINE)
ROOMS = (
    "tests/security",
    "tests/core/host/certificates",
    "tests/core/host/outbound",
    "tests/gateway/grpc_front",
    "tests/gateway/nested",
    "tests/gateway/nodes",
    "tests/gateway/oidc",
    "tests/gateway/secrets",
    "tests/runtime/egress",
    "tests/runtime/sandbox",
    "tests/sdk/client/login",
)
"""Whose tests are of security."""
NO_PROMISE = {
    "tests/core/host/outbound/test_aws_clients.py": "how clients of AWS are bounded, which operators alone name",
    "tests/security/test_security_page.py": "this one",
    "tests/gateway/grpc_front/test_infer_messages.py": "that messages are those of the stock client",
    "tests/gateway/nested/test_nested_book.py": "what is remembered of nested calls",
    "tests/gateway/nested/test_nested_requests.py": "how arguments are given",
    "tests/gateway/nodes/test_node_list.py": "how nodes are shown",
    "tests/gateway/oidc/test_issuers.py": "when what a gateway has for tokens is opened and closed",
    "tests/gateway/secrets/test_key_opening.py": "which key a URL names",
    "tests/gateway/secrets/test_secret_records.py": "how records are written",
    "tests/gateway/secrets/test_secret_store.py": "that the fake store is as the real one",
    "tests/runtime/egress/test_function_counts.py": "what is counted for metrics",
    "tests/runtime/sandbox/test_kernel_files.py": "how numbers of the kernel are read",
    "tests/runtime/sandbox/test_launchers.py": "that the fake launcher is as the real ones",
    "tests/runtime/sandbox/test_watched_process.py": "how a process is waited for",
}
"""Tests of these rooms that hold no promise of the page -> what they hold."""


def rows() -> list[tuple[str, str]]:
    """Each promise, and the cell that says what holds it."""
    return [row for row in ROW.findall(PAGE.read_text()) if row not in (("promise", "held by"), ("---", "---"))]


def functions(file: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def test_each_test_that_the_page_names_is_there() -> None:
    """As a file with tests, or as one test in it."""
    stale = [
        f"{name}::{test}"
        for name, test in NAMED.findall(PAGE.read_text())
        if not (ROOT / name).is_file() or not (functions(ROOT / name) & {test} if test else functions(ROOT / name))
    ]

    assert stale == []


def test_each_promise_has_a_test() -> None:
    """Named in its row, or the same as in the row above; which is not the first of its table."""
    bare, above = [], False
    for line in PAGE.read_text().splitlines():
        row = ROW.match(line)
        if row is None or row[1] in ("promise", "---"):
            above = False
            continue
        named = bool(NAMED.search(row[2]))
        if not named and not (above and row[2].startswith("the same")):
            bare.append(row[1])
        above = True

    assert rows()
    assert bare == []


def test_each_test_of_security_is_on_the_page() -> None:
    """Or is said to hold no promise; what is said so without need fails too."""
    named = {name for name, _ in NAMED.findall(PAGE.read_text())}
    present = {f"{room}/{file.name}" for room in ROOMS for file in (ROOT / room).glob("test_*.py")}

    assert sorted(present - named - set(NO_PROMISE)) == []
    assert sorted(name for name in NO_PROMISE if name in named or name not in present) == []


def test_no_promise_is_made_twice() -> None:
    """Whoever changes one would miss the other."""
    promises = [promise for promise, _ in rows()]

    assert len(promises) == len(set(promises))
