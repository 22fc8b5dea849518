"""Providers that are broken or hostile give no keys, and delete nobody."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from jose import jwk, jwt

from chassis import oidc, tokens
from identity.providers import NotDeleted
from identity.providers.oidc import OidcProvider


class Documents:
    """An HTTP server that answers whatever a test puts there, as a broken or hostile provider might."""

    def __init__(self) -> None:
        documents: dict[str, tuple[int, bytes]] = {}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = documents.get(self.path, (404, b""))
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", body.decode())
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with suppress(OSError):
                    self.wfile.write(body)

            do_POST = do_GET  # noqa: N815 - the name is the server's

            def log_message(self, *_: object) -> None:
                pass

        self.documents = documents
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def describe(self, **changes: Any) -> None:
        description = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"} | changes
        self.documents["/.well-known/openid-configuration"] = (200, json.dumps(description).encode())

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def documents() -> Iterator[Documents]:
    server = Documents()
    yield server
    server.close()


EC_KEY = ec.generate_private_key(ec.SECP256R1())


def ec_jwk(kid: str) -> dict[str, Any]:
    pem = EC_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return {**jwk.construct(pem.decode(), "ES256").to_dict(), "kid": kid}


def ec_token(issuer: str, kid: str) -> str:
    pem = EC_KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    now = int(time.time())
    claims = {"iss": issuer, "aud": ["tip", "other"], "sub": "ada", "iat": now, "exp": now + 60}
    return str(jwt.encode(claims, pem, algorithm="ES256", headers={"kid": kid}))


def test_a_provider_that_signs_by_elliptic_curve_beside_keys_for_other_things_is_understood(
    documents: Documents,
) -> None:
    keys = [{"kty": "OKP", "kid": "a"}, {"kty": "RSA", "kid": "b", "use": "enc"}, {"kty": "RSA"}, 7, ec_jwk("c")]
    documents.describe()
    documents.documents["/keys"] = (200, json.dumps({"keys": keys}).encode())
    verifier = tokens.Verifier(oidc.provider_keys(documents.url), issuer=documents.url, audience="tip")

    assert verifier.claims(ec_token(documents.url, "c"))["sub"] == "ada"
    for kid in ("a", "b", "d"):
        with pytest.raises(tokens.BadToken):
            verifier.claims(ec_token(documents.url, kid))


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "http://somebody-else.example"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": 7},
        {"jwks_uri": None},
    ],
)
def test_a_description_of_another_issuer_or_address_gives_no_keys(documents: Documents, change: dict[str, Any]) -> None:
    documents.describe(**change)
    documents.documents["/keys"] = (200, json.dumps({"keys": [ec_jwk("c")]}).encode())

    with pytest.raises(tokens.KeysUnavailable):
        oidc.provider_keys(documents.url).find("c")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (302, b"http://127.0.0.1:9/keys"),
        (500, b"{}"),
        (200, b"<html>"),
        (200, b"[]"),
        (200, b'{"keys": {}}'),
        (200, b'{"keys": ' + b"[" * 5_000 + b"]" * 5_000 + b"}"),
        (200, b'{"keys": ["' + b"x" * 300_000 + b'"]}'),
    ],
)
def test_keys_that_cannot_be_read_are_no_keys(documents: Documents, status: int, body: bytes) -> None:
    documents.describe()
    documents.documents["/keys"] = (status, body)

    with pytest.raises(tokens.KeysUnavailable):
        oidc.provider_keys(documents.url).find("c")


@pytest.mark.parametrize(("token", "sent"), [("abc", "Bearer abc"), ("token abc", "token abc")])
def test_the_deleting_token_is_a_bearers_unless_it_names_its_scheme(
    scripted_provider: Any, token: str, sent: str
) -> None:
    provider = OidcProvider("x", scripted_provider.url, scripted_provider.environment()["OIDC_DELETE_URL"], token=token)

    provider.delete_user("someone")

    assert scripted_provider.authorizations == [sent]


CUT_OFF = b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"issuer"'
NOT_ZIPPED = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize("answer", [CUT_OFF, NOT_ZIPPED, b"no HTTP at all", b""])
def test_a_provider_whose_answers_break_off_gives_no_token_and_deletes_nobody(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        Thread(target=_answer_once, args=(server, answer), daemon=True).start()
        provider = OidcProvider("x", url, f"{url}/{{subject}}", client_id="tip", client_secret="s")

        with pytest.raises(NotDeleted):
            provider.delete_user("ada")


def _answer_once(server: socket.socket, answer: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(65_536)
        connection.sendall(answer)


@pytest.mark.parametrize("token", ["t\u00f6ken \u20ac", 7, None])
def test_a_token_that_no_header_can_hold_deletes_nobody(documents: Documents, token: object) -> None:
    documents.describe(token_endpoint=f"{documents.url}/token")
    documents.documents["/token"] = (200, json.dumps({"access_token": token}).encode())
    provider = OidcProvider("x", documents.url, f"{documents.url}/{{subject}}", client_id="tip", client_secret="s")

    with pytest.raises(NotDeleted):
        provider.delete_user("ada")


@pytest.mark.parametrize("subject", [".", ".."])
def test_a_subject_that_is_a_way_out_of_the_path_deletes_nothing(scripted_provider: Any, subject: str) -> None:
    environment = scripted_provider.environment()
    provider = OidcProvider("x", scripted_provider.url, environment["OIDC_DELETE_URL"], token="t")

    with pytest.raises(NotDeleted):
        provider.delete_user(subject)
    provider.delete_user("../a/b?c#d")

    assert scripted_provider.deleted == ["/admin/users/..%2Fa%2Fb%3Fc%23d"]
