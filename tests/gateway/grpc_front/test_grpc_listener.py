"""The gRPC server: its address, its certificate, and its end."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pilotlight_core.host.certificates.server_context import TlsFiles
from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.front_wiring import GrpcAddress, GrpcFront
from pilotlight_gateway.grpc_front.grpc_listener import CertificateSource
from pilotlight_gateway.http_wiring import wire_models
from tests.gateway.served_models import served_models
from tests.gateway.world import World


def live(client: Any) -> Any:
    return client.is_server_live()


async def test_an_address_in_use_is_refused(world: World) -> None:
    """Rather than shared with whoever has it."""
    parts = world.services.parts()
    async with served_models(world) as served:
        again = GrpcFront(parts, wire_models(parts), GrpcAddress("127.0.0.1", served.front.port))
        with pytest.raises(BadInput, match=r"--grpc-port: 127\.0\.0\.1:.* cannot be listened at"):
            async with again.running():
                pass


async def test_a_stopped_server_takes_nothing(world: World) -> None:
    """And stops twice without harm."""
    from tritonclient.utils import InferenceServerException

    async with served_models(world) as served:
        assert await served.ask_grpc(live)
        await served.front.stop()
        with pytest.raises(InferenceServerException):
            await served.ask_grpc(live)


async def test_without_a_port_nothing_listens(world: World) -> None:
    """And grpc is not loaded for it."""
    parts = world.services.parts()
    front = GrpcFront(parts, wire_models(parts), GrpcAddress("127.0.0.1", 0))
    async with front.running():
        assert front.port == 0
    await front.stop()


async def test_new_connections_get_the_certificate_that_is_there(world: World, tmp_path: Path) -> None:
    """One that cannot be used changes nothing."""
    first, second = (make_pair(tmp_path / name) for name in ("one", "two"))
    files = TlsFiles(certificate=tmp_path / "tls.pem", key=tmp_path / "tls.key")

    def place(pair: tuple[Path, Path], stamp: int) -> None:
        for source, target in zip(pair, (files.certificate, files.key), strict=True):
            shutil.copyfile(source, target)
            os.utime(target, ns=(stamp, stamp))

    place(first, 10**9)
    async with served_models(world, files) as served:
        for pair, stamp in ((first, 10**9), (second, 2 * 10**9)):
            place(pair, stamp)
            assert await served.ask_grpc(live, ssl=True, root_certificates=str(pair[0]))
        source = CertificateSource(files)
        assert source.changed() is None
        files.key.write_text("nonsense")
        assert source.changed() is None
        assert await served.ask_grpc(live, ssl=True, root_certificates=str(second[0]))


def make_pair(folder: Path) -> tuple[Path, Path]:
    """A certificate that vouches for itself, for 127.0.0.1, and its key."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    folder.mkdir()
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, folder.name)])
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1)).add_extension(alternative, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths
