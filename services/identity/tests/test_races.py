"""Two at once: whoever decides by what is stored has it locked first."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from uuid import uuid4

import pytest
from sqlalchemy import Connection, event, text

from chassis.principals import Kind, Principal, Role
from identity import model, usecases
from identity.audit import Change
from identity.store import api_keys, invitations, organizations, people, service_accounts
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

PATIENCE_S = 30
WAITING = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
Beside = Callable[[Callable[[], object]], Future[object]]


@pytest.fixture
def beside(platform: Platform) -> Beside:
    """Start something in another thread; return when it waits for a lock, or is done."""

    def start(work: Callable[[], object]) -> Future[object]:
        threads = ThreadPoolExecutor(1)
        future = threads.submit(work)
        threads.shutdown(wait=False)
        with platform.admin() as connection:
            deadline = time.monotonic() + PATIENCE_S
            while not future.done() and not connection.execute(WAITING).scalar_one():
                assert time.monotonic() < deadline, "it neither waits nor ends"
                time.sleep(0.01)
        return future

    return start


@pytest.fixture(autouse=True)
def patient_locks(identity: IdentityFixtures) -> Iterator[None]:
    """Who waits here waits until it is its turn, and not only as long as in life: a busy machine is slow."""

    def wait_long(connection: Connection) -> None:
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{PATIENCE_S}s'")

    event.listen(identity.deps.engine, "begin", wait_long)
    yield
    event.remove(identity.deps.engine, "begin", wait_long)


def operator(*scopes: str, client_id: str) -> Principal:
    return Principal(Kind.SERVICE_ACCOUNT, client_id, grants=frozenset(scopes))


def admin_of(organization: Organization, identity: IdentityFixtures) -> Principal:
    subject = identity.subject(organization.external_id, "admin")
    return Principal(Kind.USER, subject, organization.id, role=Role.ADMIN)


def a_user(tx: Connection, identity: IdentityFixtures) -> model.User:
    return people.ensure_user(tx, uuid4(), identity.provider, f"user-{uuid4().hex[:12]}")


def test_a_user_who_is_being_deleted_does_not_become_a_member(identity: IdentityFixtures, beside: Beside) -> None:
    organization = identity.organization()
    with identity.deps.engine.begin() as tx:
        user = a_user(tx, identity)

    with identity.deps.engine.begin() as tx:
        people.mark_deleted(tx, user.id)
        added = beside(lambda: usecases.change_member(identity.deps, None, organization.id, user.subject, "admin"))

    with pytest.raises(model.UserDeleted):
        added.result(PATIENCE_S)


def test_a_user_who_is_becoming_a_member_is_no_member_once_deleted(identity: IdentityFixtures, beside: Beside) -> None:
    organization = identity.organization()
    with identity.deps.engine.begin() as tx:
        user = a_user(tx, identity)

    def delete() -> bool:
        with identity.deps.engine.begin() as tx:
            return people.mark_deleted(tx, user.id) and bool(people.end_memberships(tx, user.id))

    with ThreadPoolExecutor(1) as threads:
        with identity.deps.engine.begin() as tx:
            tx.execute(text("LOCK TABLE identity.outbox IN EXCLUSIVE MODE"))  # the last step of adding has to wait
            added = beside(lambda: usecases.change_member(identity.deps, None, organization.id, user.subject, "admin"))
            assert not added.done()
            deleted = threads.submit(delete)
            wait([deleted], timeout=0.2)
        assert added.result(PATIENCE_S) and deleted.result(PATIENCE_S)

    with identity.deps.engine.connect() as tx:
        assert people.member(tx, organization.id, user.subject) is None


@pytest.mark.parametrize("taken", ["demoted", "removed"])
def test_an_admin_whose_role_is_taken_away_at_the_same_moment_makes_no_other_admin(
    identity: IdentityFixtures, beside: Beside, taken: str
) -> None:
    organization = identity.organization()
    caller = admin_of(organization, identity)
    with identity.deps.engine.begin() as tx:
        user, itself = a_user(tx, identity), people.member(tx, organization.id, caller.id)
    assert itself is not None

    with identity.deps.engine.begin() as tx:
        organizations.lock(tx, organization.id)
        if taken == "demoted":
            people.put_member(tx, organization.id, itself.user_id, "member")
        else:
            people.remove_member(tx, organization.id, itself.user_id)
        added = beside(lambda: usecases.change_member(identity.deps, caller, organization.id, user.subject, "admin"))

    with pytest.raises(model.GrantTooWide):
        added.result(PATIENCE_S)
    with identity.deps.engine.connect() as tx:
        assert people.member(tx, organization.id, user.subject) is None


def test_an_admin_whose_role_is_taken_away_at_the_same_moment_makes_no_key(
    identity: IdentityFixtures, beside: Beside
) -> None:
    organization = identity.organization()
    caller = admin_of(organization, identity)
    new = model.NewApiKey("Desk", "paper", ("intent:edit",))
    with identity.deps.engine.begin() as tx:
        itself = people.member(tx, organization.id, caller.id)
        assert itself is not None
        organizations.lock(tx, organization.id)
        people.remove_member(tx, organization.id, itself.user_id)
        made = beside(lambda: usecases.create_key(identity.deps, organization.id, new, caller))

    with pytest.raises(model.GrantTooWide):
        made.result(PATIENCE_S)


def test_a_scope_taken_away_at_the_same_moment_is_not_given_to_another_service_account(
    identity: IdentityFixtures, beside: Beside
) -> None:
    caller = operator("organization:write", "intent:read", client_id=identity.service_account().client_id)
    with identity.deps.engine.begin() as tx:
        service_accounts.lock_all(tx)
        service_accounts.change(tx, caller.id, {"scopes": ["organization:write"]})
        made = beside(lambda: usecases.create_service_account(identity.deps, "x", ("intent:read",), caller))

    with pytest.raises(model.GrantTooWide):
        made.result(PATIENCE_S)


INVITED_MEANWHILE = ("accepted", "revoked", "demoted")


@pytest.mark.parametrize("meanwhile", INVITED_MEANWHILE)
def test_a_code_that_ends_at_the_same_moment_makes_no_member(
    identity: IdentityFixtures, beside: Beside, meanwhile: str
) -> None:
    organization = identity.organization()
    inviter = admin_of(organization, identity)
    with identity.deps.engine.begin() as tx:
        user, itself = a_user(tx, identity), people.member(tx, organization.id, inviter.id)
    assert itself is not None
    invitation, code, _ = usecases.create_invitation(identity.deps, inviter, organization.id, user.subject, "admin")
    guest = Principal(Kind.USER, user.subject, provider=identity.provider, user_id=user.id)

    with identity.deps.engine.begin() as tx:
        organizations.lock(tx, organization.id)
        if meanwhile == "demoted":
            people.put_member(tx, organization.id, itself.user_id, "member")
        else:
            invitations.remove(tx, organization.id, invitation.id)
        accepted = beside(lambda: usecases.accept_invitation(identity.deps, guest, code))

    with pytest.raises(model.NotFound):
        accepted.result(PATIENCE_S)
    with identity.deps.engine.connect() as tx:
        assert people.member(tx, organization.id, user.subject) is None


def test_two_who_present_one_code_make_one_membership(identity: IdentityFixtures) -> None:
    organization = identity.organization()
    with identity.deps.engine.begin() as tx:
        user = a_user(tx, identity)
    inviter = admin_of(organization, identity)
    code = usecases.create_invitation(identity.deps, inviter, organization.id, user.subject, "member")[1]
    guest = Principal(Kind.USER, user.subject, provider=identity.provider, user_id=user.id)

    def accept(_: int) -> str:
        try:
            return usecases.accept_invitation(identity.deps, guest, code).role
        except model.NotFound:
            return "refused"

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(accept, range(4))) == ["member", "refused", "refused", "refused"]


def test_a_permission_taken_away_at_the_same_moment_is_not_given_back(
    identity: IdentityFixtures, beside: Beside
) -> None:
    """A service account may keep in a key what it could not put there, but only while it is there."""
    organization = identity.organization()
    new = model.NewApiKey("Desk", "paper", ("intent:read", "control:edit"))
    key = usecases.create_key(identity.deps, organization.id, new)[0]
    narrow = operator("api-key:write", "intent:read", client_id=identity.service_account().client_id)
    changes = {"permissions": ["intent:read", "control:edit"]}

    with identity.deps.engine.begin() as tx:
        api_keys.change(tx, organization.id, key.id, {"permissions": ["intent:read"]})
        changed = beside(lambda: usecases.change_key(identity.deps, narrow, organization.id, key.id, changes))

    with pytest.raises(model.GrantTooWide):
        changed.result(PATIENCE_S)
    assert usecases.get_key(identity.deps, organization.id, key.id).permissions == ("intent:read",)


def test_changes_of_one_organization_at_once_never_wait_for_each_other_in_a_circle(
    identity: IdentityFixtures, organization: Organization, beside: Beside
) -> None:
    """To delete a key locks nothing before it is recorded; the other change has the organization locked by then."""
    admin = admin_of(organization, identity)
    key, _ = usecases.create_key(identity.deps, organization.id, model.NewApiKey("Desk", "paper", ("intent:read",)))

    with identity.deps.outbox.begin() as tx:
        locked = organizations.lock(tx, organization.id)
        deleting = beside(lambda: usecases.delete_key(identity.deps, admin, organization.id, key.id))
        change = Change("organization.updated", organization.id, str(organization.id), None, locked)
        identity.deps.record_change(tx, admin, change)

    assert deleting.result(PATIENCE_S) is None
