"""Which authorities' certificates a process believes, of the platform's own servers."""

from __future__ import annotations

import ssl
from pathlib import Path

from pilotlight_core.model.errors import BadInput


def trust_authorities(ca_file: str, setting: str) -> ssl.SSLContext:
    """A client's context that believes the authorities in `ca_file` (PEM) and no others; names are verified.

    Args:
        setting: that names the file, for errors.

    Raises:
        BadInput: there is no such file, or no authority in it.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    add_authorities(context, ca_file, setting)
    return context


def add_authorities(context: ssl.SSLContext, ca_file: str, setting: str) -> None:
    """Have a client's context believe those in `ca_file` too; raises as `trust_authorities`."""
    path = Path(ca_file).expanduser()
    try:
        context.load_verify_locations(cafile=path)
    except ssl.SSLError as error:
        raise BadInput(f"{setting}: {path} has no certificates of authorities (PEM).") from error
    except OSError as error:
        raise BadInput(f"{setting}: {path} cannot be read: {error.strerror}.") from error


def believe_gateways(ca_file: str, setting: str = "--ca-file") -> ssl.SSLContext:
    """What connections to gateways' listeners for agents are made with: certifi's authorities, and those in `ca_file`.

    Raises:
        BadInput: as `trust_authorities`.
    """
    import certifi  # here, since it comes with what is loaded when it is first needed

    context = trust_authorities(certifi.where(), setting)
    if ca_file:
        add_authorities(context, ca_file, setting)
    return context


def certificate_problem(error: BaseException, ca_file: str, setting: str = "PILOTLIGHT_CA_FILE") -> str:
    """What is wrong with a server's certificate, as a sentence with what to do; "": that is not the problem.

    Args:
        ca_file: of the authorities that are believed; "": those of the system.
        setting: that names another file of them.
    """
    if not isinstance(error, ssl.SSLCertVerificationError):
        return ""
    why = error.verify_message or str(error)
    if "mismatch" in why or "doesn't match" in why:
        return f"its certificate is of another name ({why.rstrip('.')})"
    if "expired" in why or "not yet valid" in why:
        return f"its {why.rstrip('.')}, by this machine's clock"
    known = f"those in {ca_file}" if ca_file else f"those this machine knows; {setting} names another's file"
    return f"its certificate is of no authority among {known} ({why.rstrip('.')})"
