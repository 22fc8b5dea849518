"""Keys, passwords and the certificate are replaced as docs/operations.md says, and callers notice nothing."""

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
import pytest
import requests
from jose import jwt

from tip_testing.commands import create
from tip_testing.waiting import eventually
from trading_proto import trading_pb2, trading_pb2_grpc

pytestmark = pytest.mark.timeout(1_200)  # many containers restart, and a machine may have more to do than that

ROLLING_RESTART = Path(__file__).resolve().parents[2] / "deploy" / "containers" / "rolling_restart.sh"
# Those who open a secret before those who seal one, so that nobody meets a key they do not have.
OPENING, SEALING = ("intents-executor", "intents-reconciler", "accounts-relay"), ("accounts",)
EVERY_TYPE = [value for value in trading_pb2.EventType.values() if value]
CONTROLS = ("controls", "controls-relay", "controls-consumer")


def rotate(containers: Any, *what: str) -> None:
    containers.compose("run", "--rm", "--no-deps", "-T", "prepare", "python", "/opt/tip/containers/rotate.py", *what)


def restart(*services: str) -> None:
    def restart_one(service: str) -> None:
        subprocess.run([str(ROLLING_RESTART), service], check=True, stdout=subprocess.DEVNULL)

    with ThreadPoolExecutor(len(services)) as pool:
        list(pool.map(restart_one, services))


def log_in(containers: Any, address: str) -> bool:
    """Whether the database lets someone in at this address."""
    script = "import sys, psycopg2; psycopg2.connect(sys.argv[1]).close()"
    return bool(containers.run_in("controls", "python", "-c", script, address)[0] == 0)


def address_of_controls(containers: Any) -> str:
    return str(containers.run_in("controls", "printenv", "DATABASE_URL")[1].strip())


def account_with_a_secret(stack: Any) -> str:
    admin = stack.user("acme")
    account = admin("POST", "/v1/accounts", {"name": "rotation", "broker": "paper", "environment": "paper"}).json()[
        "id"
    ]
    path = f"/v1/accounts/{account}/credentials"
    secret = {"key_id": f"K{uuid4().hex[:8]}", "secret_key": uuid4().hex}
    address = f"{path}/{admin('POST', path, {'label': 'first', 'secret': secret}).json()['id']}"
    eventually(lambda: admin("GET", address).json()["status"] == "active", 120)
    return str(account)


def trade(stack: Any, account: str) -> str:
    """Submit an order; the status it ends with. Its executor has to open the account's secret."""
    path, caller = f"/v1/accounts/{account}/intents", stack.key("acme")
    made = caller("POST", path, create("AAPL", "1")).json()["intent_id"]
    ended = ("FILLED", "REJECTED", "FAILED", "EXPIRED", "DENIED")
    return str(eventually(lambda: (s := caller("GET", f"{path}/{made}").json()["state"]["status"]) in ended and s, 120))


@dataclass(frozen=True)
class Rotated:
    password: tuple[str, str]
    cursor: str
    rewrapped: str
    traded: tuple[str, str, str]
    """Before, while both keys open secrets, and with the new key alone."""


@pytest.fixture(scope="module")
def rotated(stack: Any, containers: Any) -> Rotated:
    account = account_with_a_secret(stack)
    first = trade(stack, account)
    cursor = stack.user("acme")("GET", "/v1/accounts?limit=1").json()["next_cursor"]
    password = address_of_controls(containers)

    for what in (["database-password", "controls_web"], ["cursor-key"], ["vault-key"]):
        rotate(containers, *what)
    stack.operate("tip", "migrate")
    restart(*OPENING, *CONTROLS)
    restart(*SEALING)
    second = trade(stack, account)
    rewrapped = stack.operate("tip", "vault", "rewrap")
    rotate(containers, "vault-key-end")
    restart(*OPENING, *SEALING)
    third = trade(stack, account)
    return Rotated((password, address_of_controls(containers)), cursor, rewrapped, (first, second, third))


def test_a_brokers_secret_outlives_the_key_it_was_sealed_with(rotated: Rotated, containers: Any) -> None:
    assert rotated.traded == ("FILLED", "FILLED", "FILLED")
    assert not rotated.rewrapped.startswith("tip: 0 ")
    for service in (*OPENING, *SEALING):
        assert "EARLIER_VAULT_KEY_ENCRYPTION_KEYS" not in containers.run_in(service, "env")[1]


def test_a_services_new_password_opens_the_database_and_its_old_one_does_not(
    rotated: Rotated, stack: Any, containers: Any
) -> None:
    old, new = rotated.password

    assert (log_in(containers, old), log_in(containers, new)) == (False, True)
    path = f"/v1/controls/accounts/{stack.account('acme')}/symbols"
    assert stack.user("acme")("GET", path).status_code == 200


def test_a_cursor_signed_with_the_old_key_is_refused_and_the_list_begins_anew(rotated: Rotated, stack: Any) -> None:
    refused = stack.user("acme")("GET", f"/v1/accounts?limit=1&next_cursor={rotated.cursor}")

    assert (refused.status_code, refused.json()["code"]) == (400, "bad_cursor")
    fresh = stack.user("acme")("GET", "/v1/accounts?limit=1").json()["next_cursor"]
    assert stack.user("acme")("GET", f"/v1/accounts?limit=1&next_cursor={fresh}").status_code == 200


def issue(stack: Any) -> str:
    client = stack.local["service_accounts"]["full"]
    answer = requests.post(
        f"{stack.local['base_url']}/oauth/token",
        data={"grant_type": "client_credentials"},
        auth=(client["client_id"], client["client_secret"]),
        verify=str(stack.ca),
        timeout=60,
    )
    return str(answer.json()["access_token"])


def kid(token: str) -> str:
    return str(jwt.get_unverified_header(token)["kid"])


def test_signing_keys_outlive_the_key_they_are_sealed_with(stack: Any, containers: Any) -> None:
    before = kid(issue(stack))
    rotate(containers, "signing-key-key")
    restart("identity")
    between = kid(issue(stack))
    resealed = stack.operate("tip", "signing-keys", "reseal")
    rotate(containers, "signing-key-key-end")
    restart("identity")

    assert [between, kid(issue(stack))] == [before, before]
    assert not resealed.startswith("tip: 0 ")
    assert "EARLIER_SIGNING_KEY_ENCRYPTION_KEYS" not in containers.run_in("identity", "env")[1]


def test_new_tokens_are_signed_with_a_new_key_and_old_ones_go_on(stack: Any) -> None:
    old = issue(stack)
    stack.operate("tip", "signing-keys", "rotate")
    new = eventually(lambda: (token := issue(stack)) and kid(token) != kid(old) and token, 120)

    published = {key["kid"] for key in stack.nobody()("GET", "/.well-known/jwks.json").json()["keys"]}
    assert {kid(old), kid(new)} <= published
    for _ in range(4):  # each replica
        for token in (old, new):
            assert stack.bearer(token)("GET", "/v1/organizations").status_code == 200


def test_a_new_certificate_is_shown_to_the_next_caller_and_open_streams_miss_nothing(
    stack: Any, containers: Any, tmp_path: Path
) -> None:
    account = stack.account("acme")
    with closing(following(stack, account)) as events:
        last = next(event for event in events if event.HasField("replay_complete")).sequence

        before = stack.ca.read_text()
        rotate(containers, "certificate")
        containers.docker("ingress")[0].exec_run(["nginx", "-c", "/etc/tip-ingress/nginx.conf", "-s", "reload"])
        containers.copy_out(tmp_path)
        stack.ca.write_text((tmp_path / "ca.crt").read_text())
        eventually(lambda: believes(stack, stack.ca), 120)
        (tmp_path / "before.crt").write_text(before)
        assert not believes(stack, tmp_path / "before.crt")

        assert trade(stack, account) == "FILLED"
        assert next(event for event in events if event.event_id).sequence == last + 1


def following(stack: Any, account: str) -> Iterator[trading_pb2.TradingEvent]:
    """Everything of the account, resumed after the last sequence whenever the stream is cut."""
    key, last = stack.organization("acme")["api_keys"]["paper"], 0
    while True:
        wanted = trading_pb2.SubscribeEventsRequest(
            trading_account_id=account, subscriptions=EVERY_TYPE, resume_after_sequence=last
        )
        with stack.channel() as channel:
            stub = trading_pb2_grpc.TradingServiceStub(channel)
            try:
                for event in stub.SubscribeEvents(wanted, metadata=[("x-api-key", key)]):
                    last = event.sequence
                    yield event
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise


def believes(stack: Any, authority: Path) -> bool:
    try:
        return requests.get(f"{stack.local['base_url']}/openapi.json", verify=str(authority), timeout=60).ok
    except requests.exceptions.SSLError:
        return False
