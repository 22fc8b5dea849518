"""What the platform's users do, through the front door: REST and the stream, against a whole running platform."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from tip_testing.commands import cancel, create, limit, replace
from tip_testing.waiting import eventually
from trading_proto import trading_pb2, trading_pb2_grpc

TERMINAL = {"FILLED", "CANCELED", "REJECTED", "DENIED", "EXPIRED", "FAILED"}


def new_symbol() -> str:
    """One that no other test trades."""
    return f"T{uuid4().hex[:8].upper()}"


@pytest.fixture
def subscribe(stack: Any) -> Iterator[Callable[..., Any]]:
    """Opens streams as the specification has it: the key in the metadata."""
    channels = []

    def subscribe(key: str, account_id: str, *types: str, after: int | None = None) -> Any:
        channel = stack.channel()
        channels.append(channel)
        wanted = [getattr(trading_pb2, f"EVENT_TYPE_{name}") for name in types]
        request = trading_pb2.SubscribeEventsRequest(trading_account_id=account_id, subscriptions=wanted)
        if after is not None:
            request.resume_after_sequence = after
        stub = trading_pb2_grpc.TradingServiceStub(channel)
        return stub.SubscribeEvents(request, metadata=[("x-api-key", key)], timeout=90)

    yield subscribe
    for channel in channels:
        channel.close()


def test_a_key_an_intent_an_order_and_its_updates_on_the_stream(stack: Any, subscribe: Callable[..., Any]) -> None:
    account, symbol = stack.account("acme"), new_symbol()
    stream = subscribe(stack.organization("acme")["api_keys"]["paper"], account, "BROKER_ORDER", after=0)

    answer = stack.key("acme")("POST", f"/v1/accounts/{account}/intents", create(symbol, "1"))
    assert answer.status_code == 201
    intent_id = answer.json()["intent_id"]

    updates = (event.broker_order for event in stream if event.HasField("broker_order"))
    seen = []
    for update in updates:
        if update.intent_id == intent_id:
            seen.append(update.status)
            if update.status in TERMINAL:
                break
    assert seen[-1] == "FILLED"
    latest = stack.key("acme")("GET", f"/v1/accounts/{account}/intents/{intent_id}").json()
    assert (latest["state"]["status"], latest["state"]["filled_quantity"]) == ("FILLED", "1")


def test_a_stream_resumed_after_a_sequence_has_neither_gap_nor_duplicate(
    stack: Any, subscribe: Callable[..., Any]
) -> None:
    account, key = stack.account("acme", "live"), stack.organization("acme")["api_keys"]["live"]
    for _ in range(3):
        sent = stack.key("acme", "live")("POST", f"/v1/accounts/{account}/intents", create(new_symbol(), "1"))
        assert sent.status_code == 201

    def read(after: int, count: int) -> list[int]:
        stream = subscribe(
            key, account, "INTENT_ACTION", "BROKER_ORDER", "BROKER_TRADE", "BROKER_POSITION", after=after
        )
        found = [event.sequence for event, _ in zip((e for e in stream if e.event_id), range(count), strict=False)]
        stream.cancel()
        return found

    first = read(0, 4)
    assert first + read(first[-1], 2) == read(0, 6)


def test_an_intent_against_a_disabled_symbol_is_refused_and_leaves_no_trace(stack: Any) -> None:
    account, symbol = stack.account("acme"), new_symbol()
    disabled = {"manually_disabled": True, "manual_reason": "earnings"}
    assert stack.user("acme")("PUT", f"/v1/controls/accounts/{account}/symbols/{symbol}", disabled).status_code == 201

    refused = stack.key("acme")("POST", f"/v1/accounts/{account}/intents", create(symbol, "1"))

    assert (refused.status_code, refused.json()["code"]) == (422, "control_rejected")
    assert [reason["code"] for reason in refused.json()["reasons"]] == ["SYMBOL_DISABLED"]
    actions = _all(stack.key("acme"), f"/v1/accounts/{account}/intents")
    assert symbol not in {action["symbol"] for action in actions}

    enabled = {"manually_disabled": False}
    assert stack.user("acme")("PUT", f"/v1/controls/accounts/{account}/symbols/{symbol}", enabled).status_code == 200
    assert stack.key("acme")("POST", f"/v1/accounts/{account}/intents", create(symbol, "1")).status_code == 201


def test_a_live_account_needs_the_trading_live_entitlement(stack: Any) -> None:
    path = f"/v1/accounts/{stack.account('globex', 'live')}/intents"

    refused = stack.key("globex", "live")("POST", path, create("AAPL", "1"))

    assert (refused.status_code, refused.json()["code"]) == (403, "entitlement_required")
    assert refused.json()["entitlement"] == "trading_live"


def test_controls_need_the_controls_premium_entitlement(stack: Any) -> None:
    path = f"/v1/controls/accounts/{stack.account('globex')}/symbols/AAPL"

    refused = stack.user("globex")("PUT", path, {"manually_disabled": True})

    assert (refused.status_code, refused.json()["entitlement"]) == (403, "controls_premium")


def test_an_open_order_is_replaced_and_canceled(stack: Any) -> None:
    account, caller = stack.account("acme"), stack.key("acme")
    path = f"/v1/accounts/{account}/intents"
    made = caller("POST", path, limit("SIM.OPEN", "1", "1.00")).json()
    address = f"{path}/{made['intent_id']}"
    eventually(lambda: caller("GET", address).json()["state"]["status"] == "ACCEPTED")

    replacement = replace(made["intent_id"], Limit={"quantity": "2", "limit_price": "1.10"})
    assert caller("POST", path, replacement).status_code == 201
    eventually(lambda: caller("GET", address).json()["state"]["status"] == "ACCEPTED")
    assert caller("GET", address).json()["state"]["leaves_quantity"] == "2"

    assert caller("POST", path, cancel(made["intent_id"])).status_code == 201
    eventually(lambda: caller("GET", address).json()["state"]["status"] == "CANCELED")
    history = [action["command"]["type"] for action in _all(caller, f"{address}/actions")]
    assert history == ["CREATE", "REPLACE", "CANCEL"]


@pytest.mark.parametrize(
    ("caller", "status"),
    [
        (lambda stack: stack.user("acme"), 200),
        (lambda stack: stack.service(), 200),
        (lambda stack: stack.key("acme"), 401),
        (lambda stack: stack.bearer(stack.local["tokens"]["user_without_organization"]), 401),
        (lambda stack: stack.nobody(), 401),
        (lambda stack: stack.user("acme", "member"), 403),
        (lambda stack: stack.user("globex"), 403),
        (lambda stack: stack.service("no_scopes"), 403),
    ],
    ids=["internal admin", "service account", "key", "no organization", "nobody", "member", "foreign", "no scope"],
)
def test_the_outbox_health_report_is_for_operators(stack: Any, caller: Callable[[Any], Any], status: int) -> None:
    answer = caller(stack)("GET", "/v1/accounts/outbox/health")

    assert answer.status_code == status
    if status == 200:
        totals = {"pending", "processing", "failed", "completed", "redriven"}
        assert set(answer.json()) == {"entries", "oldest_claim_at", "oldest_failed_at", "oldest_pending_at"} | totals
    else:
        assert answer.headers["Content-Type"].startswith("text/plain")


def test_an_account_and_its_credential_live_and_end(stack: Any) -> None:
    admin, secret = stack.user("acme"), f"canary-{uuid4().hex}"
    account = admin("POST", "/v1/accounts", {"name": "journey", "broker": "paper", "environment": "paper"})
    assert account.status_code == 201
    path = f"/v1/accounts/{account.json()['id']}"

    made = admin("POST", f"{path}/credentials", {"label": "first", "secret": {"key_id": "K1", "secret_key": secret}})
    assert made.status_code == 201
    assert secret not in made.text
    address = f"{path}/credentials/{made.json()['id']}"
    eventually(lambda: admin("GET", address).json()["status"] == "active")

    assert admin("POST", f"{path}/disable", {"reason": "audit"}).json()["disabled_reason"] == "audit"
    refused = stack.key("acme")("POST", f"{path}/intents", create("AAPL", "1"))
    assert [reason["code"] for reason in refused.json()["reasons"]] == ["ACCOUNT_DISABLED"]

    assert admin("DELETE", address).status_code == 204
    assert admin("DELETE", path).status_code == 204
    assert admin("GET", path).status_code == 404
    assert stack.key("acme")("GET", f"{path}/intents").status_code == 404


def test_a_failed_outbox_row_is_driven_again_when_its_cause_is_repaired(stack: Any) -> None:
    admin = stack.user("acme")
    account = admin("POST", "/v1/accounts", {"name": "redrive", "broker": "paper", "environment": "paper"}).json()["id"]
    path = f"/v1/accounts/{account}/credentials"

    def failed() -> int:
        return int(stack.user("acme")("GET", "/v1/accounts/outbox/health").json()["failed"])

    before = failed()
    stack.execute("REVOKE INSERT ON accounts.vault_object FROM tip_accounts")
    try:
        made = admin("POST", path, {"label": "first", "secret": {"key_id": "K1", "secret_key": uuid4().hex}}).json()
        address = f"{path}/{made['id']}"
        eventually(lambda: admin("GET", address).json()["status"] == "invalid")
        assert failed() == before + 1
    finally:
        stack.execute("GRANT INSERT ON accounts.vault_object TO tip_accounts")

    row = stack.operate("tip", "outbox", "list", "accounts").splitlines()[-1].split()[0]
    assert "never tried again" in stack.operate("tip", "outbox", "explain", "accounts", row)
    stack.operate("tip", "outbox", "redrive", "accounts", row)

    eventually(lambda: admin("GET", address).json()["status"] == "active")
    assert failed() == before + 1, "the failed row stays as it is"
    assert "It was driven again as row" in stack.operate("tip", "outbox", "explain", "accounts", row)


def test_another_organizations_account_does_not_exist(stack: Any) -> None:
    foreign = stack.account("globex")
    unknown = str(uuid4())

    def problem(account_id: str) -> dict[str, Any]:
        answer = stack.key("acme")("GET", f"/v1/accounts/{account_id}/intents").json()
        return {name: value for name, value in answer.items() if name not in ("instance", "request_id")}

    assert problem(foreign) == problem(unknown)
    assert problem(foreign)["status"] == 404


def test_the_same_idempotency_key_makes_one_action(stack: Any) -> None:
    account, symbol = stack.account("acme"), new_symbol()
    path, key = f"/v1/accounts/{account}/intents", uuid4().hex

    first, second = (stack.key("acme")("POST", path, create(symbol, "1"), **{"Idempotency-Key": key}) for _ in range(2))

    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["id"] == second.json()["id"]
    assert second.headers["Idempotent-Replayed"] == "true"


def test_a_user_deletes_themself_and_is_gone(stack: Any) -> None:
    """The last of the file: the user does not come back."""
    member = stack.user("globex", "read_only")
    assert member("GET", "/v1/users/me").status_code == 200

    assert member("DELETE", "/v1/users/me").status_code == 204

    gone = member("DELETE", "/v1/users/me")
    assert (gone.status_code, gone.text) == (401, "unauthorized")


def _all(caller: Any, path: str) -> list[dict[str, Any]]:
    """Every page of a list."""
    found, cursor = [], None
    while True:
        page = caller("GET", f"{path}?limit=500" + (f"&next_cursor={cursor}" if cursor else "")).json()
        found += page["data"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found
