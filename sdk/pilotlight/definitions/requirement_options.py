"""`requirements=` of an App: packages, or the file that names them, which is read when the app is deployed."""

from __future__ import annotations

from pathlib import Path

from pilotlight.definitions.errors import OptionError

MOST_FILE_BYTES = 256 * 1024
"""Of a requirements.txt."""


def requirements_of(value: object) -> tuple[str, ...] | str:
    """The packages that are named, or the path of a file.

    Raises:
        OptionError: naming what is neither.
    """
    if not value:
        return ()
    # Late: most modules that containers import have none.
    from pilotlight_core.model.packages.requirement_texts import EXPECTED, requirements_fault

    if isinstance(value, str):
        if "\n" in value or not value.endswith((".txt", ".in")):
            raise OptionError(
                f"requirements={value!r}: {EXPECTED} in a list, or the path of a requirements.txt.",
                field="requirements",
            )
        return value
    if why := requirements_fault(value):
        raise OptionError(f"requirements=: {why}.", field="requirements")
    assert isinstance(value, list | tuple)  # noqa: S101 - else there was a fault
    return tuple(value)


def read_requirements(value: tuple[str, ...] | str, root: Path) -> tuple[str, ...]:
    """The packages of an app; a file is looked for below `root`.

    Raises:
        OptionError: the file cannot be read, or a line of it is no requirement.
    """
    if not isinstance(value, str):
        return value
    from pilotlight_core.model.packages.requirement_texts import requirements_fault, requirements_of_file

    path = root / value
    try:
        if path.stat().st_size > MOST_FILE_BYTES:
            raise OptionError(f"requirements={value!r}: {path} is larger than 256 KiB.", field="requirements")
        found = requirements_of_file(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"requirements={value!r}: {path} cannot be read: {error}.", field="requirements") from None
    except ValueError as error:
        raise OptionError(f"requirements={value!r}: {error}.", field="requirements") from None
    if why := requirements_fault(found):
        raise OptionError(f"requirements={value!r}: {why}.", field="requirements")
    return found
