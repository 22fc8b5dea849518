"""The demo data: two organizations that differ in what they may do, and the credentials of everyone in them.

Seeding again keeps what is there and still works; tokens are renewed every time, and people who were deleted have
successors.
"""

import json
from contextlib import closing
from typing import Any

from sqlalchemy import NullPool, create_engine

from chassis import db
from tip_local.demo_ids import demo_id
from tip_local.identity_seed import IdentitySeed, add_account
from tip_local.stack import Stack

TOKEN_LIFETIME_S = 12 * 3600
ENTITLEMENTS = {"acme": ("controls_premium", "trading_live"), "globex": ()}
LOGIN = "alice@acme.example"
"""An admin of Acme who can sign in, at the console and with `tip login`."""
SERVICE_ACCOUNTS: dict[str, tuple[str, ...] | None] = {"full": None, "no_scopes": ()}


def seed(stack: Stack) -> dict[str, Any]:
    known = _earlier(stack)
    identity = IdentitySeed(stack.signing_env, token_lifetime_s=TOKEN_LIFETIME_S)
    try:
        organizations = {name: _organization(identity, stack, name, known) for name in ENTITLEMENTS}
        _put_console(identity, stack)
        return {
            "organizations": organizations,
            "login": identity.ensure_login(LOGIN, demo_id("acme"), known.get("login", {})),
            "tokens": {"user_without_organization": identity.user_without_organization("wanderer")},
            "service_accounts": {
                name: _service_account(identity, name, scopes, known) for name, scopes in SERVICE_ACCOUNTS.items()
            },
        }
    finally:
        identity.close()


def register_console(stack: Stack) -> None:
    """All that an installation without demo data needs of it: people sign in at the console, too."""
    with closing(IdentitySeed(stack.signing_env, token_lifetime_s=TOKEN_LIFETIME_S)) as identity:
        _put_console(identity, stack)


def _put_console(identity: IdentitySeed, stack: Stack) -> None:
    identity.put_console(f"{stack.public_url}/console/callback")


def _earlier(stack: Stack) -> dict[str, Any]:
    try:
        return dict(json.loads(stack.home.local_file.read_text()))
    except (OSError, ValueError):
        return {}


def _organization(identity: IdentitySeed, stack: Stack, name: str, known: dict[str, Any]) -> dict[str, Any]:
    tokens = identity.ensure_organization(name, demo_id(name), ENTITLEMENTS[name])
    kept = known.get("organizations", {}).get(name, {}).get("api_keys", {})
    return {
        "id": str(demo_id(name)),
        "external_id": name,
        "provider": identity.provider,
        "accounts": _accounts(stack, name),
        "api_keys": identity.ensure_keys(demo_id(name), kept),
        "tokens": tokens,
    }


def _accounts(stack: Stack, name: str) -> dict[str, str]:
    accounts = {environment: demo_id(f"{name}-{environment}") for environment in ("paper", "live")}
    engine = create_engine(db.with_driver(stack.admin_url), poolclass=NullPool)
    with engine.begin() as admin:
        for environment, account_id in accounts.items():
            add_account(admin, demo_id(name), environment, account_id=account_id)
    return {environment: str(account_id) for environment, account_id in accounts.items()}


def _service_account(
    identity: IdentitySeed, name: str, scopes: tuple[str, ...] | None, known: dict[str, Any]
) -> dict[str, str]:
    kept = known.get("service_accounts", {}).get(name, {})
    account = identity.ensure_service_account(kept, scopes)
    return {"client_id": account.client_id, "client_secret": account.client_secret, "token": account.token}
