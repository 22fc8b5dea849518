"""A certificate for development, signed by an authority of its own whose key is thrown away.

In production the volume holds your own tls.crt and tls.key and this is not run.
"""

import os
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID = timedelta(days=397)
RENEW_BEFORE = timedelta(days=30)
NAMES = ("localhost", "ingress", "127.0.0.1", "::1")


def ensure(folder: Path, *, anew: bool = False) -> None:
    """The files tls.crt, tls.key and ca.crt; unless wanted anew, those there are kept while valid for all the names."""
    names = tuple(dict.fromkeys((*NAMES, os.environ.get("INGRESS_NAME") or "localhost")))
    if anew or not _still_good(folder / "tls.crt", names):
        authority, authority_key = _authority()
        leaf, key = _leaf(names, authority, authority_key)
        _write(folder / "tls.key", _pem(key), 0o400)
        _write(folder / "tls.crt", leaf.public_bytes(serialization.Encoding.PEM), 0o444)
        _write(folder / "ca.crt", authority.public_bytes(serialization.Encoding.PEM), 0o444)


def _still_good(file: Path, names: tuple[str, ...]) -> bool:
    if not file.exists():
        return False
    found = x509.load_pem_x509_certificate(file.read_bytes())
    covered = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return found.not_valid_after_utc - datetime.now(UTC) > RENEW_BEFORE and all(
        _general(name) in covered for name in names
    )


def _authority() -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("Development authority of the Trading Intents Platform")
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    made = (
        _builder(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return made.sign(key, hashes.SHA256()), key


def _leaf(
    names: tuple[str, ...], authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    made = (
        _builder(_name(names[0]), authority.subject, key)
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
    )
    return made.sign(authority_key, hashes.SHA256()), key


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + VALID)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(file: Path, content: bytes, mode: int) -> None:
    file.unlink(missing_ok=True)
    file.touch(mode=0o600)
    file.write_bytes(content)
    file.chmod(mode)
