"""Who may call a route: `allow(...)` authenticates, decides, counts the request, and documents itself.

@bp.get("/v1/accounts/<uuid:account_id>/intents")
@allow(user(*ANY_ROLE), api_key("intent:read"), service_account("intent:read"))
def list_intents(account_id): ...
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, cast
from uuid import UUID

from flask import Request, current_app, g, request

from chassis import callers, cursors, http_rules, problems, query, ratelimit, tenancy
from chassis.authentication import Access, FindKeys, PresentedCredentials, identify
from chassis.principals import Alternative, Kind, Principal, who_may

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class BadId:
    """A path id that is not a UUID; refused after the credential, so that a stranger learns nothing."""


def allow(
    *alternatives: Alternative,
    unsuitable: int = 403,
    not_member: int | None = None,
    find_keys: FindKeys | None = None,
) -> Callable[[Callable[Arguments, Answer]], Callable[Arguments, Answer]]:
    """Let only these callers pass. `unsuitable` is the status for a kind of caller that is not among them, and for a
    user who acts for no organization; `not_member`, if given, for one whose token names an organization all the same.

    `find_keys(key, **path_arguments)` is for a route where a round trip counts: it reads the key's rows in the same
    query as whatever else the route needs of the database.
    """

    def decorate(view: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
        @wraps(view)
        def guarded(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
            access = cast("Access", current_app.extensions["access"])
            g.principal = _authenticated(access, unsuitable, partial(find_keys, **kwargs) if find_keys else None)
            tenancy.serve(g.principal.organization_id)
            charge(1)
            decide(g.principal, alternatives, unsuitable, not_member)
            _refuse_bad_ids(kwargs)
            query.refuse_undeclared()
            refuse_unseen(g.principal, kwargs.get("account_id"))
            return view(*args, **kwargs)

        guarded.alternatives = alternatives  # type: ignore[attr-defined]
        return guarded

    return decorate


def charge(units: int) -> None:
    """Take units from the caller's quota, or raise 429. `allow` takes the one that every request costs."""
    access = cast("Access", current_app.extensions["access"])
    if units:
        access.rate_limit.count(f"{g.principal.kind}:{g.principal.id}", units)


def page_size(limit: str | None) -> int:
    """How many rows are requested; the caller pays for them."""
    count = cursors.limit(limit)
    charge(ratelimit.units_of_rows(count))
    return count


def _authenticated(access: Access, unsuitable: int, find_keys: FindKeys | None) -> Principal:
    """The caller. Where an unsuitable caller gets 401, a request without a credential gets the same answer."""
    check = callers.credential_check.get()
    try:
        principal = authenticate(access, request, find_keys)
    except problems.Problem as problem:
        if check and problem.status in (401, 429):
            check.refuse()
        if problem.status == unsuitable == 401:
            raise _refusal(401, "") from None
        raise
    if check:
        check.verify(principal)
    return principal


def authenticate(access: Access, incoming: Request, find_keys: FindKeys | None = None) -> Principal:
    """The caller behind the request's one credential."""
    return identify(access, _presented(incoming), find_keys)


def _presented(incoming: Request) -> PresentedCredentials:
    credentials = [("key", value) for value in _lines(incoming, "HTTP_X_API_KEY")]
    credentials += [("bearer", value) for value in _lines(incoming, "HTTP_AUTHORIZATION")]
    return PresentedCredentials(credentials, incoming.headers.get("x-organization-id"), incoming.remote_addr)


def _lines(incoming: Request, variable: str) -> list[str]:
    """The header's value on each of its lines: two of them are two credentials, not one with a comma in it."""
    value = incoming.environ.get(variable)
    if value is None:
        return []
    return value.split(",") if variable in incoming.environ.get(http_rules.REPEATED_HEADERS, ()) else [value]


def anyone(view: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """A route that needs no credential; counted per address."""

    @wraps(view)
    def counted(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        access = cast("Access", current_app.extensions["access"])
        access.rate_limit.count(f"address:{request.remote_addr}")
        query.refuse_undeclared()
        return view(*args, **kwargs)

    counted.alternatives = ()  # type: ignore[attr-defined]
    return counted


def refuse_unseen(principal: Principal, account_id: object) -> None:
    """An account outside an API key's bounds is answered like one that does not exist, whatever the route.

    That holds for every route whose path names an account, which is always called `account_id`.
    """
    if isinstance(account_id, UUID) and not principal.sees(account_id):
        raise problems.not_found()


def _refuse_bad_ids(arguments: Mapping[str, Any]) -> None:
    if any(isinstance(value, BadId) for value in arguments.values()):
        raise problems.Problem(400, "bad_id", "An id in the path is not a UUID.")


def decide(
    principal: Principal, alternatives: tuple[Alternative, ...], unsuitable: int, not_member: int | None = None
) -> None:
    """Return if one alternative admits the principal, else raise the refusal."""
    of_kind = [alternative for alternative in alternatives if alternative.kind is principal.kind]
    if not of_kind:
        raise _refusal(unsuitable, f"This kind of caller may not do this. {who_may(alternatives)}")
    admitting = [alternative for alternative in of_kind if alternative.admits(principal)]
    without_organization = principal.organization_id is None
    if principal.kind is Kind.USER and without_organization and _need_organization(of_kind):
        status = not_member if not_member and principal.names_organization else unsuitable
        raise _refusal(status, "The token names no organization that you belong to.")
    if not admitting:
        raise problems.Problem(403, detail=f"The role, scope or permission is missing. {who_may(tuple(of_kind))}")
    if without_organization and _need_organization(admitting):
        raise problems.Problem(403, "organization_required", "Name an organization by x-organization-id, a UUID.")


def _need_organization(alternatives: Sequence[Alternative]) -> bool:
    return all(alternative.organization for alternative in alternatives)


def _refusal(status: int, detail: str) -> problems.Problem:
    return problems.unauthenticated("unauthorized") if status == 401 else problems.Problem(status, detail=detail)
