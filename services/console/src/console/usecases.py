"""Signing in and out, and whose session a cookie is."""

import hmac
import secrets
from dataclasses import dataclass, replace
from datetime import datetime

from chassis import logs
from console import model
from console.api import Api, ApiProblem, PlatformAway, with_token
from console.providers import Providers, now
from console.store import Sessions

log = logs.get(__name__)

_NOT_ACCEPTED = (
    "You have signed in, but the platform does not take the token that came of it. "
    "Whoever runs it may have set another issuer or audience than the login's."
)


@dataclass(frozen=True)
class Deps:
    api: Api
    sessions: Sessions
    providers: Providers


@dataclass(frozen=True)
class Answer:
    """What the authorization server sent the browser back with."""

    state: str
    code: str
    issuer: str


def begin_sign_in(deps: Deps, goes_on_at: str) -> tuple[str, str]:
    """The cookie of a browser that goes to sign in, and where it goes."""
    state, verifier, nonce = (secrets.token_urlsafe(length) for length in (24, 48, 24))
    sign_in = model.SignIn(state, verifier, model.own_path(goes_on_at), nonce)
    address = deps.providers.answering().address(sign_in)
    return deps.sessions.begin_sign_in(sign_in), address


def complete_sign_in(deps: Deps, cookie: str, answer: Answer, before: str) -> tuple[str, str]:
    """The cookie of a new session, and where the person wanted to go. A session of `before` ends."""
    sign_in = deps.sessions.take_sign_in(cookie)
    if sign_in is None or not hmac.compare_digest(sign_in.state.encode(), answer.state.encode()):
        raise model.SignInFailed
    provider, moment = deps.providers.get(), now()
    if provider.issuer is not None and answer.issuer != provider.issuer:
        raise model.SignInFailed
    tokens = provider.exchange(deps.api, answer.code, sign_in, moment)
    _check_accepted(deps, tokens)
    if before:
        sign_out(deps, before)
    return deps.sessions.add(model.Session(tokens, moment + model.SESSION_LIFETIME)), sign_in.goes_on_at


def _check_accepted(deps: Deps, tokens: model.Tokens) -> None:
    """Without it, somebody whose token the platform does not take would be sent to sign in again, and again."""
    try:
        with_token(deps.api, tokens.access).get("/v1/users/me")
    except ApiProblem as problem:
        if problem.status != 401:
            raise
        raise model.SignInFailed(_NOT_ACCEPTED) from None


def current_session(deps: Deps, cookie: str) -> model.Session:
    """The session of the cookie, with an access token that lasts for a page."""
    moment = now()
    session = deps.sessions.find(cookie)
    if session is None or session.ends_at <= moment:
        raise model.SignedOut
    return _renewed(deps, cookie, moment) if session.tokens.are_due(moment) else session


def _renewed(deps: Deps, cookie: str, moment: datetime) -> model.Session:
    """Of requests at the same time one refreshes; the others wait, and find what it got."""
    with deps.sessions.locked(cookie):
        session = deps.sessions.find(cookie)
        if session is None:
            raise model.SignedOut
        if not session.tokens.are_due(moment):
            return session
        if not session.tokens.refresh:
            return _while_it_lasts(session, moment)
        try:
            tokens = deps.providers.get().refresh(deps.api, session.tokens.refresh, moment)
        except model.SignInFailed:
            deps.sessions.drop(cookie)
            raise model.SignedOut from None
        renewed = replace(session, tokens=tokens)
        deps.sessions.put(cookie, renewed)
        return renewed


def _while_it_lasts(session: model.Session, moment: datetime) -> model.Session:
    """A provider that gives no refresh tokens has its people sign in again."""
    if session.tokens.expires_at <= moment:
        raise model.SignedOut
    return session


def sign_out(deps: Deps, cookie: str) -> None:
    """End the session here, and what came of the consent at the authorization server."""
    session = deps.sessions.find(cookie)
    deps.sessions.drop(cookie)
    if session is None or not session.tokens.refresh:
        return
    try:
        deps.providers.get().revoke(deps.api, session.tokens.refresh)
    except (ApiProblem, PlatformAway):
        log.warning("revocation_failed")  # it runs out by itself, and nobody has it any more


def hold_key(deps: Deps, cookie: str, environment: str, key: str | None) -> None:
    """Keep an API key in the session, or forget it."""
    with deps.sessions.locked(cookie):
        session = deps.sessions.find(cookie)
        if session is None:
            raise model.SignedOut
        others = {name: held for name, held in session.keys.items() if name != environment}
        deps.sessions.put(cookie, replace(session, keys=others | ({environment: key} if key else {})))
