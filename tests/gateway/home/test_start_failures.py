"""What callers hear of a start that failed."""

from __future__ import annotations

from pilotlight_core.model.errors import CODES
from pilotlight_core.model.messages.call_messages import MISCONFIGURED, RemoteError
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_gateway.home.start_failures import MISCONFIGURED_TEXT, StartFailure, start_failure
from tests.builders.calls import credit


def test_the_functions_own_error_is_told_with_its_traceback() -> None:
    """It is the same at the next start."""
    error = RemoteError("ImportError", "no module named numpi", "Traceback …")
    failed = credit(seq=2, state=ContainerState.GONE, error=error, reason="import failed")

    assert start_failure(failed) == StartFailure("load_failed", "import failed", error=error)


def test_what_the_operator_has_to_mend_is_no_fault_of_the_function() -> None:
    """503, for later."""
    error = RemoteError(MISCONFIGURED, "could not be started: secret.py is not in the blob store")
    failed = credit(seq=2, state=ContainerState.GONE, error=error, reason=error.message)

    assert start_failure(failed) == StartFailure("misconfigured", MISCONFIGURED_TEXT, 30.0)
    assert CODES["misconfigured"].status == 503
