"""Credentials that change while the outcome of a send is unknown: no order ever goes to a second broker account."""

from pathlib import Path
from typing import Any
from uuid import uuid4

from fault_contract import TERMINAL, client_order_id
from fault_proxy import Hold, path_is
from fault_scenario import scenario
from fault_trial import SetUpFailed, Trial

from tip_testing import processes

OPEN = "SIM.OPEN"
OPERATOR = str(Path(__file__).with_name("fault_operator.py"))
QUERIES = 3
"""So often the platform has queried under the old credential while another one was the account's."""


def _secret(key_id: str) -> dict[str, Any]:
    return {"secret": {"key_id": key_id, "secret_key": uuid4().hex}}


def _new_key() -> str:
    return f"K{uuid4().hex}"


def _path(trial: Trial, *rest: str) -> str:
    return "/".join([f"/v1/accounts/{trial.account_id}/credentials", *rest])


def _add_credential(trial: Trial, key_id: str) -> str:
    """Returns its id when the executor may use it."""
    answered = trial.call("POST", _path(trial), {"label": "scenario", **_secret(key_id)})
    answered.raise_for_status()
    credential_id: str = answered.json()["id"]
    _wait_until_active(trial, credential_id, 1)
    return credential_id


def _wait_until_active(trial: Trial, credential_id: str, version: int) -> None:
    def active() -> bool:
        answered = trial.call("GET", _path(trial, credential_id))
        read = answered.json()
        return answered.ok and (read["status"], read["version"]) == ("active", version)

    trial.wait(active, f"the credential is active at version {version}")


def _reads(trial: Trial, key_id: str, path: str) -> int:
    """How often this path was read at the broker under this key."""
    is_there, requests = path_is(path), list(trial.proxy.requests)
    return sum(request.method == "GET" and request.key_id == key_id and is_there(request) for request in requests)


def _queries(trial: Trial, key_id: str) -> int:
    return _reads(trial, key_id, "/v2/orders:by_client_order_id")


def _wait_until_listed(trial: Trial, key_id: str) -> None:
    """The reconciler remembers a key pair for a moment: from now on it lists orders under this one alone."""
    trial.wait(lambda: _reads(trial, key_id, "/v2/orders"), f"orders are listed under {key_id}")


@scenario()
def credential_added(trial: Trial) -> None:
    """A first credential is added while an order under the account's derived pair is unknown: found under the pair."""
    hold, new_key = Hold(cut=True), _new_key()
    sent = trial.on_line("POST", hold)
    intent_id = trial.create(OPEN, "2")
    sent.wait_for_hits()
    _add_credential(trial, new_key)
    before = _queries(trial, trial.key_id)
    trial.wait(
        lambda: trial.posts(new_key) or _queries(trial, trial.key_id) >= before + QUERIES,
        "the broker is queried again under the old pair",
    )
    hold.release()
    trial.wait_for_status(intent_id, "ACCEPTED")
    trial.wait(lambda: trial.orders(intent_id), "the order at the broker")
    orders = trial.orders(intent_id)
    trial.note(f"{len(orders)} orders at the broker, in {len({order['account_id'] for order in orders})} accounts")
    trial.expect(not trial.posts(new_key), "it was sent again under the new credential")
    trial.expect(len(orders) == 1, f"orders at the broker: {orders}")
    trial.cancel(intent_id)
    trial.wait_for_status(intent_id, "CANCELED")
    trial.expect(not trial.open_orders(intent_id), f"still open at the broker: {trial.open_orders(intent_id)}")


def _unknown_under(trial: Trial, key_id: str) -> tuple[str, Hold]:
    """An intent whose POST under this key is on its way to the broker, and whose answer was lost."""
    hold = Hold(cut=True)
    sent = trial.on_line("POST", hold, key_id=key_id)
    intent_id = trial.create(trial.symbol, "2", limit="1")
    try:
        sent.wait_for_hits()
    except TimeoutError as error:
        raise SetUpFailed("nothing was sent under the first credential") from error
    return intent_id, hold


def _expect_operator_required(trial: Trial, intent_id: str, old_key: str, *other_keys: str) -> None:
    def parked() -> bool:
        return bool(any(map(trial.posts, other_keys)) or trial.state(intent_id)["reason_code"] == "OPERATOR_REQUIRED")

    trial.wait(parked, "reason_code OPERATOR_REQUIRED, or a send under another credential")
    state = trial.state(intent_id)
    for key_id in other_keys:
        trial.expect(not trial.posts(key_id), f"sent under {old_key} and again under {key_id}: {state}")
    trial.expect((state["status"], state["outcome"]) == ("SUBMITTED", "unknown"), f"it is {state}")


@scenario()
def credential_rotated_away(trial: Trial) -> None:
    """The credential is rotated to another broker account: the order stays unknown until an operator resolves it."""
    old_key, new_key = _new_key(), _new_key()
    credential_id = _add_credential(trial, old_key)
    intent_id, hold = _unknown_under(trial, old_key)
    trial.call("PUT", _path(trial, credential_id, "secret"), _secret(new_key)).raise_for_status()
    _wait_until_active(trial, credential_id, 2)
    _expect_operator_required(trial, intent_id, old_key, new_key, trial.key_id)
    _wait_until_listed(trial, new_key)
    with trial.streams.holding(trial.symbol):  # one opened under the old credential would report it
        hold.release()
        (order,) = trial.wait(lambda: trial.orders(intent_id), "the late order at the broker")
        trial.expect(intent_id in tip(trial, "orders", "unresolved"), "tip orders unresolved does not name the intent")
        name = order["client_order_id"]
        tip(trial, "orders", "resolve", name, "--broker-order-id", order["order_id"], "--status", "working")
        trial.wait_for_status(intent_id, "ACCEPTED")
        trial.expect(len(trial.orders(intent_id)) == 1, f"orders at the broker: {trial.orders(intent_id)}")
        trial.wait(lambda: intent_id in tip(trial, "orders", "unresolved"), "the open order that nobody can query")
        tip(trial, "orders", "resolve", name, "--broker-order-id", order["order_id"], "--status", "canceled")
        trial.wait_for_status(intent_id, "CANCELED")
        trial.expect(intent_id not in tip(trial, "orders", "unresolved"), "tip orders unresolved still names it")


@scenario()
def credential_revoked(trial: Trial) -> None:
    """The credential is revoked: nothing is sent under the derived pair, and an operator says that it never arrived."""
    old_key = _new_key()
    credential_id = _add_credential(trial, old_key)
    intent_id, _hold = _unknown_under(trial, old_key)
    trial.call("DELETE", _path(trial, credential_id)).raise_for_status()
    _expect_operator_required(trial, intent_id, old_key, trial.key_id)
    trial.expect(intent_id in tip(trial, "orders", "unresolved"), "tip orders unresolved does not name the intent")
    (action,) = trial.actions(intent_id)
    tip(trial, "orders", "resolve", client_order_id(action["id"]), "--never-arrived")
    trial.wait_for_status(intent_id, *TERMINAL - {"FILLED"})
    trial.expect(not trial.orders(intent_id), f"orders at the broker: {trial.orders(intent_id)}")


def tip(trial: Trial, *words: str) -> str:
    """What the operator's command prints."""
    environment = {"DATABASE_URL": trial.on.admin_url, "TIP_HOME": str(trial.on.directory / "home")}
    log = trial.on.directory / f"tip-{uuid4().hex}.log"
    done = processes.start(OPERATOR, *words, environment=environment, log=log)
    code = done.wait(120)
    trial.expect(code == 0, f"tip {' '.join(words)} ended with {code}: {done.output()[-300:]}")
    return done.output()
