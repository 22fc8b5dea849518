"""Signing in with the local provider: sessions of browsers, the second factor, signing out."""

import hmac
import secrets
import time
from uuid import UUID

import pyotp

from chassis import db, keys, tenancy
from chassis.sealing import BrokenSeal
from identity import audit, model, model_login
from identity.store import logins as store
from identity.store import token_families
from identity.usecases import passwords
from identity.usecases.deps import Deps

ISSUER_NAME = "Trading Intents Platform"


def sign_in(deps: Deps, subject: str, password: str) -> str:
    """The cookie of a new session. If the person has a second factor, the session counts only after it was shown."""
    return _begin_session(deps, passwords.verify_password(deps, subject, password))


def sign_in_with_code(deps: Deps, subject: str, code: str, password: str) -> str:
    """Set the password by a one-time code, and go on as with the password."""
    return _begin_session(deps, passwords.set_password(deps, subject, code, password))


def _begin_session(deps: Deps, proven: model_login.ProvenPassword) -> str:
    cookie, user_id = secrets.token_urlsafe(32), proven.user_id
    with tenancy.serving_all(), deps.engine.begin() as tx:
        passwords.confirm_password(tx, proven)
        found = store.find_totp(tx, user_id)
        signed_in = found is None or not found.confirmed
        lifetime = model_login.SESSION_LIFETIME if signed_in else model_login.SECOND_STEP_LIFETIME
        store.add_session(tx, keys.digest(cookie), user_id, lifetime, signed_in=signed_in, totp=False)
        if signed_in:
            deps.record_login(tx, user_id, audit.SIGNED_IN, model_login.SignIn(proven.method, second_factor=False))
    return cookie


def find_session(deps: Deps, cookie: str | None) -> model_login.Session | None:
    if not cookie:
        return None
    with db.reading(deps.engine) as tx:
        return store.find_session(tx, keys.digest(cookie))


def offer_totp(deps: Deps, session: model_login.Session) -> tuple[str, str]:
    """A new secret for the second factor and its otpauth address; it counts once a code of it was shown."""
    secret = pyotp.random_base32()
    with deps.engine.begin() as tx:
        found = store.find_totp(tx, session.user_id)
        if found and found.confirmed:
            raise model.NotFound
        store.put_totp(tx, session.user_id, deps.signer.seal(_bound_to(session.user_id), secret.encode()))
    return secret, pyotp.TOTP(secret).provisioning_uri(session.subject, ISSUER_NAME)


def has_totp(deps: Deps, session: model_login.Session) -> bool:
    with db.reading(deps.engine) as tx:
        found = store.find_totp(tx, session.user_id)
    return found is not None and found.confirmed


def show_totp(deps: Deps, session: model_login.Session, code: str) -> str:
    """The cookie of a session that has shown its second factor, in place of this one. A code is taken only once."""
    cookie = secrets.token_urlsafe(32)
    with tenancy.serving_all(), deps.engine.begin() as tx:
        found = store.lock_totp(tx, session.user_id)
        in_time = store.try_session(tx, session.digest, model_login.TOTP_TRIES)
        usable = found if in_time and store.try_totp(tx, session.user_id, model_login.TOTP_FAILURES) else None
        step = _step_of(deps, usable, code) if usable else None
        shown = step is not None and store.use_totp(tx, session.user_id, step)
        if shown:
            store.drop_session(tx, session.digest)
            lifetime = model_login.SESSION_LIFETIME
            store.add_session(tx, keys.digest(cookie), session.user_id, lifetime, signed_in=True, totp=True)
            deps.record_login(tx, session.user_id, audit.SIGNED_IN, model_login.SignIn("password", second_factor=True))
        elif not in_time:
            store.drop_session(tx, session.digest)
    if not shown:
        raise model_login.SignInRefused
    return cookie


def _step_of(deps: Deps, found: model_login.Totp, code: str) -> int | None:
    """The step whose code this is, if it can still be used."""
    secret = deps.signer.unseal(_bound_to(found.user_id), found.sealed_secret).decode()
    generator, given = pyotp.TOTP(secret), model_login.written_code(code).encode()
    steps = model_login.totp_steps(time.time(), found.last_step)
    return next((step for step in steps if hmac.compare_digest(generator.generate_otp(step).encode(), given)), None)


def reseal_totp_secrets(deps: Deps) -> model.Resealed:
    """Put every secret of a second factor under the current key-encryption key. One that does not open stops none."""
    count, unopened = 0, []
    with deps.engine.begin() as tx:
        for found in store.all_totps(tx):
            try:
                sealed = deps.signer.reseal(_bound_to(found.user_id), found.sealed_secret)
            except BrokenSeal:
                unopened.append(str(found.user_id))
                continue
            if sealed:
                store.reseal_totp(tx, found.user_id, sealed)
                count += 1
    return model.Resealed(count, tuple(unopened))


def sign_out(deps: Deps, session: model_login.Session, *, everywhere: bool = False) -> None:
    """End this session; everywhere: all sessions of the person, and everything clients may do for them."""
    with deps.engine.begin() as tx:
        store.drop_session(tx, session.digest)
        if everywhere:
            store.drop_sessions(tx, session.user_id)
            token_families.revoke_all(tx, session.user_id)


def remove_expired_logins(deps: Deps) -> None:
    with deps.engine.begin() as tx:
        store.remove_expired(tx)


def _bound_to(user_id: UUID) -> str:
    return f"totp:{user_id}"
