"""Which objects a request can name: one's own, another organization's, a mixture, none that exists, none that could."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from attack_callers import Caller
from attack_rules import Rule
from attack_tenants import Tenant, unknown_id

MALFORMED = "not-an-id"


@dataclass(frozen=True)
class Target:
    """`account` says whether the first thing named is the caller's to see, `inner` the same of what is inside it."""

    name: str
    values: dict[str, str] = field(default_factory=dict)
    account: bool = True
    inner: bool = True
    environment: str | None = None
    malformed: bool = False
    foreign: bool = False
    """Names something of the victim's."""


@dataclass(frozen=True)
class Scenery:
    own: Tenant
    victim: Tenant
    scratch: Tenant
    """An organization that operators may change while everything else goes on."""
    client_id: str


def targets(rule: Rule, caller: Caller, scenery: Scenery) -> Iterator[Target]:
    tenant = caller.tenant or scenery.own
    operator = caller.kind == "service" and rule.operators
    for target in _KINDS[rule.objects](rule, caller, tenant, scenery):
        if operator and target.foreign and rule.method != "GET":
            continue  # operators are above tenants: it would be allowed, and the victim is not to be changed
        yield target


def _nothing(*_: object) -> Iterator[Target]:
    yield Target("-")


def _environments(*_: object) -> Iterator[Target]:
    for environment in ("paper", "live"):
        yield Target(environment, environment=environment)


def _places(rule: Rule) -> tuple[tuple[str, str], ...]:
    return tuple(
        (environment, f"spare_{environment}" if rule.spare else environment) for environment in ("paper", "live")
    )


def _accounts(rule: Rule, _caller: Caller, tenant: Tenant, scenery: Scenery) -> Iterator[Target]:
    for environment, place in _places(rule):
        yield Target(f"own {environment}", {"account_id": tenant.accounts[place]}, environment=environment)
        yield Target(f"victim's {environment}", {"account_id": scenery.victim.accounts[place]}, account=False,
                     foreign=True)  # fmt: skip
    yield Target("unknown", {"account_id": unknown_id()}, account=False)
    yield Target("malformed", {"account_id": MALFORMED}, malformed=True)


def _symbols(rule: Rule, caller: Caller, tenant: Tenant, scenery: Scenery) -> Iterator[Target]:
    for target in _accounts(rule, caller, tenant, scenery):
        symbol = scenery.victim.symbol if target.foreign else tenant.symbol
        yield Target(**{**vars(target), "values": {**target.values, "symbol": "WRITTEN" if rule.spare else symbol}})


def _inner(name: str, own: dict[str, str], victims: dict[str, str], rule: Rule, tenant: Tenant, scenery: Scenery
           ) -> Iterator[Target]:  # fmt: skip
    (_, paper), (_, live) = _places(rule)
    victim = scenery.victim.accounts
    for environment, place in _places(rule):
        yield Target(f"own {environment}", {"account_id": tenant.accounts[place], name: own.get(place, unknown_id())},
                     inner=place in own, environment=environment)  # fmt: skip
        yield Target(f"victim's in own {environment}", {"account_id": tenant.accounts[place], name: victims[place]},
                     inner=False, environment=environment, foreign=True)  # fmt: skip
        yield Target(f"unknown in own {environment}", {"account_id": tenant.accounts[place], name: unknown_id()},
                     inner=False, environment=environment)  # fmt: skip
        yield Target(f"victim's {environment}", {"account_id": victim[place], name: victims[place]}, account=False,
                     foreign=True)  # fmt: skip
        mixed = {"account_id": victim[place], name: own.get(place, unknown_id())}
        yield Target(f"own in victim's {environment}", mixed, account=False, foreign=True)
    if live in own:
        yield Target("own live in own paper", {"account_id": tenant.accounts[paper], name: own[live]}, inner=False,
                     environment="paper")  # fmt: skip
    yield Target("unknown in unknown", {"account_id": unknown_id(), name: unknown_id()}, account=False)
    yield Target("malformed", {"account_id": tenant.accounts[paper], name: MALFORMED}, malformed=True)


def _credentials(rule: Rule, _caller: Caller, tenant: Tenant, scenery: Scenery) -> Iterator[Target]:
    yield from _inner("credential_id", tenant.credentials, scenery.victim.credentials, rule, tenant, scenery)


def _intents(rule: Rule, _caller: Caller, tenant: Tenant, scenery: Scenery) -> Iterator[Target]:
    yield from _inner("intent_id", tenant.intents, scenery.victim.intents, rule, tenant, scenery)


def _bulk_operations(rule: Rule, _caller: Caller, tenant: Tenant, scenery: Scenery) -> Iterator[Target]:
    victims = scenery.victim.bulk_operations
    yield from _inner("bulk_operation_id", tenant.bulk_operations, victims, rule, tenant, scenery)


def _organizations(rule: Rule, caller: Caller, tenant: Tenant, scenery: Scenery) -> Iterator[Target]:
    operator = caller.kind == "service"
    yield Target("own", {"organization_id": tenant.id})
    yield Target("victim's", {"organization_id": scenery.victim.id}, account=operator, foreign=True)
    yield Target("unknown", {"organization_id": unknown_id()}, account=False)
    yield Target("malformed", {"organization_id": MALFORMED}, malformed=True)


def _members(rule: Rule, caller: Caller, tenant: Tenant, scenery: Scenery) -> Iterator[Target]:
    victim = scenery.victim
    for target in _organizations(rule, caller, tenant, scenery):
        of = victim if target.foreign else tenant
        yield Target(**{**vars(target), "values": {**target.values, "subject": of.subject("member")}})
    if rule.method != "PUT":  # an admin may make anybody a member
        values = {"organization_id": tenant.id, "subject": victim.subject("member")}
        yield Target("victim's in own", values, inner=False, foreign=True)


def _invitations(rule: Rule, caller: Caller, tenant: Tenant, scenery: Scenery) -> Iterator[Target]:
    victim = scenery.victim
    for target in _organizations(rule, caller, tenant, scenery):
        of = victim if target.foreign else tenant
        yield Target(**{**vars(target), "values": {**target.values, "invitation_id": of.invitation_id}})
    values = {"organization_id": tenant.id, "invitation_id": victim.invitation_id}
    yield Target("victim's in own", values, inner=False, foreign=True)
    yield Target("malformed in own", {"organization_id": tenant.id, "invitation_id": MALFORMED}, malformed=True)


def _own_memberships(_rule: Rule, caller: Caller, tenant: Tenant, scenery: Scenery) -> Iterator[Target]:
    home = caller.tenant or caller.belongs
    yield Target("own", {"organization_id": tenant.id}, account=home is tenant)
    yield Target("victim's", {"organization_id": scenery.victim.id}, account=False, foreign=True)
    yield Target("unknown", {"organization_id": unknown_id()}, account=False)
    yield Target("malformed", {"organization_id": MALFORMED}, malformed=True)


def _keys(_rule: Rule, _caller: Caller, tenant: Tenant, scenery: Scenery) -> Iterator[Target]:
    yield Target("own", {"key_id": tenant.key_id})
    yield Target("victim's", {"key_id": scenery.victim.key_id}, account=False, foreign=True)
    yield Target("unknown", {"key_id": unknown_id()}, account=False)
    yield Target("malformed", {"key_id": MALFORMED}, malformed=True)


def _clients(_rule: Rule, _caller: Caller, _tenant: Tenant, scenery: Scenery) -> Iterator[Target]:
    yield Target("known", {"client_id": scenery.client_id})
    yield Target("unknown", {"client_id": f"sa_{unknown_id()[:12]}"}, account=False)


def _failed_rows(*_: object) -> Iterator[Target]:
    yield Target("failed", {"row_id": "0"})  # which an allowed request replaces by one that was made for it
    for name, row_id in (("last", str(2**63 - 1)), ("beyond", "9" * 40), ("no number", MALFORMED)):
        yield Target(name, {"row_id": row_id}, account=False)


def _entitlements(_rule: Rule, _caller: Caller, _tenant: Tenant, scenery: Scenery) -> Iterator[Target]:
    name = {"name": "controls_premium"}
    yield Target("scratch", {"organization_id": scenery.scratch.id, **name})
    yield Target("victim's", {"organization_id": scenery.victim.id, **name}, foreign=True)
    yield Target("unknown", {"organization_id": unknown_id(), **name}, account=False)
    yield Target("malformed", {"organization_id": MALFORMED, **name}, malformed=True)


def _providers(_rule: Rule, caller: Caller, tenant: Tenant, scenery: Scenery) -> Iterator[Target]:
    any_of_them = caller.kind == "service"
    home = caller.tenant or caller.belongs
    local = {"provider": "local"}
    yield Target("own", {**local, "provider_id": tenant.external_id}, account=any_of_them or home is tenant)
    yield Target("victim's", {**local, "provider_id": scenery.victim.external_id}, account=any_of_them, foreign=True)
    yield Target("unknown", {**local, "provider_id": f"nobody-{unknown_id()[:8]}"}, account=False)
    yield Target("unknown provider", {"provider": "another", "provider_id": tenant.external_id}, account=False)


_KINDS = {
    "none": _nothing,
    "environment": _environments,
    "account": _accounts,
    "symbol": _symbols,
    "credential": _credentials,
    "intent": _intents,
    "bulk_operation": _bulk_operations,
    "organization": _organizations,
    "member": _members,
    "invitation": _invitations,
    "own_membership": _own_memberships,
    "key": _keys,
    "client": _clients,
    "failed_row": _failed_rows,
    "entitlement": _entitlements,
    "provider": _providers,
}


def expected(rule: Rule, caller: Caller, target: Target, entitlements: frozenset[str]) -> frozenset[int]:
    """What the contract says, in its order: the first check that fails decides."""
    if rule.public:
        return rule.ok
    checks = (
        (caller.refused, caller.refused is not None),
        *_permission(rule, caller),
        (400, target.malformed),
        (403, rule.makes_account and caller.accounts is not None),
        (404, not target.account or _is_outside_bounds(caller, target)),
        (403, not rule.any_environment and _is_other_environment(caller, target)),
        (rule.unentitled, _needs(rule, target) - entitlements),
        (404, not target.inner),
    )
    status = next((status for status, fails in checks if fails), None)
    if status is None:
        return rule.ok
    # Where the specification has 401 for whoever is unsuitable, two credentials are that, too.
    return (
        frozenset({status, rule.unsuitable})
        if caller.refused == 400 and rule.unsuitable == 401
        else frozenset({status})
    )


def _permission(rule: Rule, caller: Caller) -> Iterator[tuple[int, bool]]:
    if caller.kind == "user":
        yield rule.unsuitable, rule.users is None
        yield _without_organization(rule, caller), rule.user_organization and caller.tenant is None
        yield 403, rule.user_organization and caller.role not in (rule.users or ())
        return
    needed = rule.key if caller.kind == "key" else rule.scope
    yield rule.unsuitable, needed is None
    yield 403, bool(needed) and needed not in caller.grants
    yield 403, caller.kind == "service" and not rule.operators and caller.tenant is None


def _without_organization(rule: Rule, caller: Caller) -> int:
    return rule.not_member if rule.not_member and caller.names_organization else rule.unsuitable


def _is_outside_bounds(caller: Caller, target: Target) -> bool:
    named = target.values.get("account_id")
    return caller.accounts is not None and named is not None and named not in caller.accounts


def _is_other_environment(caller: Caller, target: Target) -> bool:
    return None not in (caller.environment, target.environment) and caller.environment != target.environment


def _needs(rule: Rule, target: Target) -> frozenset[str]:
    """Controls are premium everywhere; trading is only where it is live."""
    if rule.entitlement is None or (rule.entitlement == "trading_live" and target.environment != "live"):
        return frozenset()
    return frozenset({rule.entitlement})
