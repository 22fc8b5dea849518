"""accounts, wired."""

import os
from collections.abc import Mapping

from flask import Flask
from sqlalchemy import Engine

from accounts import descriptions, routes, routes_outbox, store, usecases
from accounts.config import Config
from accounts.model import EVENT_TYPES
from chassis import db, logs, web
from chassis.config import BadConfiguration, decode_key, stop_on_bad_configuration
from chassis.cursors import Cursors
from chassis.outbox import Outbox
from credential_vault import Hashicorp, Keyring, Local, Vault


def create_app(environment: Mapping[str, str] = os.environ) -> Flask:
    with stop_on_bad_configuration("accounts"):
        config = Config.from_env(environment)
        deps = dependencies(config)
    logs.configure("accounts", log_format=config.log_format, level=config.log_level)
    return web.create(
        "accounts",
        config,
        deps.engine,
        [routes.bp, routes_outbox.bp],
        statuses=routes.STATUSES,
        extensions={"deps": deps, "cursors": Cursors(config.cursor_key), **descriptions.EXTENSIONS},
    )


def dependencies(config: Config, name: str = "accounts") -> usecases.Deps:
    engine = db.engine(config.database_url, pool_size=config.database_pool_size, name=name)
    keyring = _keyring(config)
    return usecases.Deps(
        engine,
        Outbox(engine, store.SCHEMA, event_types=EVENT_TYPES, attempt_limit=config.outbox_attempt_limit),
        keyring,
        _vault(config, engine, keyring),
        _fingerprint_key(config, keyring),
        config.internal_organization_ids,
        config.live_rehearsal,
        config.most_accounts,
        config.most_credentials,
    )


def _keyring(config: Config) -> Keyring:
    try:
        return Keyring.from_text(config.read_key_encryption_key(), config.earlier_key_encryption_keys)
    except ValueError as problem:
        raise BadConfiguration(f"VAULT_KEY_ENCRYPTION_KEY: {problem}") from None


def _vault(config: Config, engine: Engine, keyring: Keyring) -> Vault:
    if config.vault == "local":
        return Local(keyring, store.VaultObjects(engine))
    return Hashicorp(
        config.vault_address, config.read_vault_token, mount=config.vault_mount, prefix=config.vault_prefix
    )


def _fingerprint_key(config: Config, keyring: Keyring) -> bytes:
    if config.fingerprint_key:
        return decode_key(config.fingerprint_key, "FINGERPRINT_KEY")
    return keyring.derive("fingerprint")
