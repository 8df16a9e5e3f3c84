"""Which of the samples in a file a release cannot read, as JSON: run with that release's interpreter.

OLD_PYTHON -m tests.releases.read_samples FILE
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import msgspec

from tests.releases.stored_types import JSON_FILES, MESSAGES, RECORDS


def unreadable(samples: dict[str, dict[str, dict[str, str]]]) -> dict[str, list[str]]:
    """By which sample of a type it is, the types; those that the release does not know are "unknown"."""
    found: dict[str, list[str]] = {"least": [], "full": [], "unknown": []}
    for name, both in samples.items():
        kind = (MESSAGES | RECORDS | JSON_FILES).get(name)
        if kind is None:
            found["unknown"].append(name)
            continue
        decode = msgspec.json.decode if name in JSON_FILES else msgspec.msgpack.decode
        for which, sample in both.items():
            try:
                decode(base64.b64decode(sample["bytes"]), type=kind)
            except msgspec.DecodeError:
                found[which].append(name)
    return found


if __name__ == "__main__":
    print(json.dumps(unreadable(json.loads(Path(sys.argv[1]).read_text())["samples"])))
