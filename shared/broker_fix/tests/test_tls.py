"""An encrypted line to the broker."""

import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tip_testing.broker_conformance import limit
from tip_testing.fix_acceptor import Acceptor, Gateway
from tip_testing.waiting import eventually

from .conftest import broker_at

ENCRYPTED = {"FIX_HOST": "localhost", "FIX_TLS": "true"}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of `localhost`, with its key, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = tmp_path_factory.mktemp("certificate") / "localhost.pem"
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return file


@pytest.fixture(scope="module")
def encrypted_port(acceptor: Acceptor, certificate: Path) -> Iterator[int]:
    """In front of the broker, as stunnel would be."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                caller, _ = listening.accept()
                threading.Thread(target=carry, args=(caller,), daemon=True).start()

    def carry(caller: socket.socket) -> None:
        with suppress(OSError), context.wrap_socket(caller, server_side=True) as near:
            far = socket.create_connection(("127.0.0.1", acceptor.port))
            threading.Thread(target=pump, args=(far, near), daemon=True).start()
            pump(near, far)

    threading.Thread(target=serve, daemon=True).start()
    yield listening.getsockname()[1]
    with suppress(OSError):
        listening.shutdown(socket.SHUT_RDWR)
    listening.close()


def pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError, ValueError):
        while data := source.recv(65_536):
            sink.sendall(data)
    sink.close()


def test_a_broker_with_a_certificate_of_nobody_is_not_logged_on_to(
    encrypted_port: int, start_gateway: Callable[..., Gateway]
) -> None:
    gateway = start_gateway(encrypted_port, **ENCRYPTED)

    eventually(lambda: "fix_line_lost error=SSLCertVerificationError" in gateway.process.output())
    assert gateway.process.end(signal.SIGTERM) == 0


def test_orders_go_over_an_encrypted_line(
    encrypted_port: int, certificate: Path, start_gateway: Callable[..., Gateway]
) -> None:
    gateway = start_gateway(encrypted_port, **ENCRYPTED, FIX_TLS_CA=str(certificate))
    eventually(gateway.is_ready)

    assert broker_at(gateway.url).create(limit("OPEN")).broker_order_id
