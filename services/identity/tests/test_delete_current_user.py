"""DELETE /v1/users/me: at the provider first, then here, and whole whatever happens in between."""

import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import requests
from flask.testing import FlaskClient
from sqlalchemy import text

from identity import model, usecases
from identity.app import create_app, dependencies
from identity.config import Config, WorkerConfig
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform
from tip_testing.processes import running
from tip_testing.waiting import eventually

AT_ONCE = timedelta(0)
Bearer = Callable[[str], dict[str, str]]


@pytest.fixture(scope="module")
def organization(identity: IdentityFixtures) -> Organization:
    return identity.organization()


@pytest.fixture
def subject(identity: IdentityFixtures, organization: Organization) -> str:
    """A member who may be deleted."""
    return new_member(identity, organization)


def new_member(identity: IdentityFixtures, organization: Organization) -> str:
    subject = f"user-{uuid4().hex[:12]}"
    with identity.deps.engine.connect() as tx:
        from identity.store import organizations

        found = organizations.find(tx, organization.id)
    assert found
    usecases.put_member(identity.deps, found, subject, "member")
    return subject


def deletions(events: Any, subject: str) -> list[Any]:
    return [payload for payload in events.of("user.deleted") if payload["subject"] == subject]


def is_marked(platform: Platform, subject: str) -> tuple[bool, bool]:
    """Whether the deletion has begun, and whether it is done."""
    query = text("SELECT deletion_begun_at, deleted_at FROM identity.app_user WHERE subject = :subject")
    with platform.admin() as connection:
        row = connection.execute(query, {"subject": subject}).one()
    return row.deletion_begun_at is not None, row.deleted_at is not None


def test_a_deleted_user_is_gone_for_ever_and_told_of_once(
    client: FlaskClient,
    identity: IdentityFixtures,
    organization: Organization,
    subject: str,
    events: Any,
    as_bearer: Bearer,
) -> None:
    token = as_bearer(identity.user_token(subject, organization.external_id))

    answer = client.delete("/v1/users/me", headers=token)

    assert (answer.status_code, answer.data) == (204, b"")
    [told] = deletions(events, subject)
    assert set(told) == {"event_id", "event_type", "occurred_at", "user_id", "provider", "subject"}
    again = client.delete("/v1/users/me", headers=token)
    assert (again.status_code, again.get_data(as_text=True)) == (401, "unauthorized")
    assert client.get("/v1/auth/self", headers=token).status_code == 401
    assert len(deletions(events, subject)) == 1


def test_a_deleted_user_stays_out_although_an_admin_makes_them_a_member_again(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, subject: str, as_bearer: Bearer
) -> None:
    token = as_bearer(identity.user_token(subject, organization.external_id))
    client.delete("/v1/users/me", headers=token)

    path = f"/v1/organizations/{organization.id}/memberships/{subject}"
    answer = client.put(path, json={"role": "admin"}, headers=as_bearer(organization.tokens["admin"]))

    assert answer.status_code in (200, 201)
    assert client.get("/v1/auth/self", headers=token).status_code == 401


def test_an_admin_cannot_tell_a_user_deleted_elsewhere_from_an_unknown_one(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, subject: str, as_bearer: Bearer
) -> None:
    deleted_token = as_bearer(identity.user_token(subject, organization.external_id))
    client.delete("/v1/users/me", headers=deleted_token)
    elsewhere = identity.organization()
    admin, members = as_bearer(elsewhere.tokens["admin"]), f"/v1/organizations/{elsewhere.id}/memberships"

    def told(name: str) -> list[Any]:
        calls = [
            client.put(f"{members}/{name}", json={"role": "member"}, headers=admin),
            client.get(f"{members}/{name}", headers=admin),
            client.put(f"{members}/{name}", json={"role": "read_only"}, headers=admin),
            client.delete(f"{members}/{name}", headers=admin),
        ]
        return [(answer.status_code, answer.json and {**answer.json, "subject": "", "user_id": ""}) for answer in calls]

    def without_moments(answers: list[Any]) -> list[Any]:
        return [(status, body and {**body, "created_at": ""}) for status, body in answers]

    assert without_moments(told(subject)) == without_moments(told(f"unknown-{subject}"))
    assert [status for status, _body in told(subject)] == [201, 200, 200, 204]


def test_a_deleted_user_whom_an_admin_makes_a_member_still_may_do_nothing(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, subject: str, as_bearer: Bearer
) -> None:
    client.delete("/v1/users/me", headers=as_bearer(identity.user_token(subject, organization.external_id)))
    elsewhere = identity.organization()

    put = client.put(
        f"/v1/organizations/{elsewhere.id}/memberships/{subject}",
        json={"role": "admin"},
        headers=as_bearer(elsewhere.tokens["admin"]),
    )

    assert put.status_code == 201
    token = as_bearer(identity.user_token(subject, elsewhere.external_id, "admin"))
    assert client.get("/v1/api-keys", headers=token).status_code == 401


def test_deleting_at_the_same_moment_from_many_places_tells_once(
    platform: Platform,
    identity: IdentityFixtures,
    organization: Organization,
    subject: str,
    events: Any,
    as_bearer: Bearer,
) -> None:
    app = create_app(platform.web_environment("identity"))
    token = as_bearer(identity.user_token(subject, organization.external_id))

    with ThreadPoolExecutor(8) as threads:
        statuses = list(
            threads.map(lambda _: app.test_client().delete("/v1/users/me", headers=token).status_code, range(8))
        )

    assert 204 in statuses and set(statuses) <= {204, 401, 503}, "503: who waited too long for the others"
    assert len(deletions(events, subject)) == 1


def test_every_error_of_this_endpoint_is_plain_text(
    client: FlaskClient, identity: IdentityFixtures, as_bearer: Bearer
) -> None:
    both = as_bearer(identity.user_without_organization()) | {"x-api-key": "x"}
    for answer, status in (
        (client.delete("/v1/users/me"), 401),
        (client.delete("/v1/users/me", headers=both), 400),
    ):
        assert answer.status_code == status
        assert answer.content_type == "text/plain; charset=utf-8"


class Deleting:
    """identity in front of a scripted provider; users' tokens come from identity's own key all the same."""

    def __init__(self, platform: Platform, provider: Any) -> None:
        # The provider's name stays: it is the same table of users. Only where they are deleted is another.
        web = platform.web_environment("identity", **provider.environment())
        relay = platform.environment("identity", **provider.environment())
        self.app = create_app(platform.web_environment("identity"))
        self.app.extensions["deps"] = dependencies(Config.from_env(web))
        self.relay = dependencies(WorkerConfig.from_env(relay))


@pytest.fixture
def deleting(platform: Platform, scripted_provider: Any) -> Deleting:
    return Deleting(platform, scripted_provider)


@pytest.mark.parametrize("answer", [204, 404, 410])
def test_gone_at_the_provider_is_gone_also_if_it_was_before(
    platform: Platform, identity: IdentityFixtures, organization: Organization, subject: str, deleting: Deleting,
    scripted_provider: Any, events: Any, as_bearer: Bearer, answer: int,
) -> None:  # fmt: skip
    scripted_provider.answer = answer

    token = as_bearer(identity.user_token(subject, organization.external_id))

    assert deleting.app.test_client().delete("/v1/users/me", headers=token).status_code == 204
    assert is_marked(platform, subject) == (True, True)
    assert len(deletions(events, subject)) == 1


@pytest.mark.parametrize("answer", [401, 403, 429, 503, "down"])
def test_a_provider_that_has_certainly_not_deleted_leaves_everything_as_it_was(
    platform: Platform, identity: IdentityFixtures, organization: Organization, subject: str, deleting: Deleting,
    scripted_provider: Any, events: Any, as_bearer: Bearer, answer: int | str,
) -> None:  # fmt: skip
    if answer == "down":
        scripted_provider.close()
    scripted_provider.answer = answer
    client, token = deleting.app.test_client(), as_bearer(identity.user_token(subject, organization.external_id))

    refused = client.delete("/v1/users/me", headers=token)

    assert refused.status_code == 503
    assert refused.content_type == "text/plain; charset=utf-8"
    assert "Retry-After" in refused.headers
    assert is_marked(platform, subject) == (False, False)
    assert deletions(events, subject) == []
    assert usecases.finish_deletions(deleting.relay, AT_ONCE) == 0
    assert client.get("/v1/auth/self", headers=token).json["organization_id"] == str(organization.id)


@pytest.mark.parametrize("answer", [500, "drop after deleting"])
def test_a_provider_that_may_have_deleted_is_asked_again_by_the_worker(
    platform: Platform, identity: IdentityFixtures, organization: Organization, subject: str, deleting: Deleting,
    scripted_provider: Any, events: Any, as_bearer: Bearer, answer: int | str,
) -> None:  # fmt: skip
    scripted_provider.answer = answer
    client, token = deleting.app.test_client(), as_bearer(identity.user_token(subject, organization.external_id))

    unclear = client.delete("/v1/users/me", headers=token)

    assert (unclear.status_code, unclear.content_type) == (503, "text/plain; charset=utf-8")
    assert deletions(events, subject) == []
    assert is_marked(platform, subject) == (True, False)
    assert usecases.finish_deletions(deleting.relay, AT_ONCE) == 0, "the provider still does not answer"
    scripted_provider.answer = 404
    assert usecases.finish_deletions(deleting.relay, AT_ONCE) == 1
    assert is_marked(platform, subject) == (True, True)
    assert len(deletions(events, subject)) == 1


def test_the_worker_leaves_a_deletion_alone_that_is_still_under_way(
    platform: Platform, identity: IdentityFixtures, organization: Organization, subject: str, deleting: Deleting,
    scripted_provider: Any, as_bearer: Bearer,
) -> None:  # fmt: skip
    scripted_provider.answer = 500
    token = as_bearer(identity.user_token(subject, organization.external_id))
    deleting.app.test_client().delete("/v1/users/me", headers=token)
    scripted_provider.answer = 204

    assert usecases.finish_deletions(deleting.relay) == 0
    assert usecases.finish_deletions(deleting.relay, AT_ONCE) == 1


def test_one_attempt_does_not_withdraw_another(
    identity: IdentityFixtures, organization: Organization, subject: str
) -> None:
    from identity.store import people

    with identity.deps.engine.begin() as tx:
        user = people.ensure_user(tx, uuid4(), identity.provider, subject)
        first = people.begin_deletion(tx, user.id)
    assert first
    with identity.deps.engine.begin() as tx:
        assert people.begin_deletion(tx, user.id) is None, "there is an open one, so this one cannot be withdrawn"
        assert not people.withdraw_deletion(tx, user.id, first)
        assert people.take_unfinished_deletion(tx, timedelta(days=-1)) == user
        people.mark_deleted(tx, user.id)  # so that no other test finds it


NOT_DELETED = "The identity provider refused or is out of reach; the user was not deleted. Try again."
BEGUN = "The deletion has begun and is not confirmed yet; it will be completed without being asked for again."


@pytest.mark.parametrize("refusal", [429, 503])
def test_a_refused_retry_does_not_make_an_unconfirmed_deletion_forgotten(
    platform: Platform, identity: IdentityFixtures, organization: Organization, subject: str, deleting: Deleting,
    scripted_provider: Any, events: Any, as_bearer: Bearer, refusal: int,
) -> None:  # fmt: skip
    """The provider deletes and its answer is lost; the user asks again and now the provider is too busy."""
    client, token = deleting.app.test_client(), as_bearer(identity.user_token(subject, organization.external_id))
    scripted_provider.answer = "drop after deleting"
    lost = client.delete("/v1/users/me", headers=token)
    scripted_provider.answer = refusal
    retried = client.delete("/v1/users/me", headers=token)

    assert is_marked(platform, subject) == (True, False)
    assert scripted_provider.deleted == [f"/admin/users/{subject}"]
    assert [(each.status_code, each.get_data(as_text=True)) for each in (lost, retried)] == [(503, BEGUN)] * 2
    scripted_provider.answer = 404
    assert usecases.finish_deletions(deleting.relay, AT_ONCE) == 1
    assert is_marked(platform, subject) == (True, True)
    assert len(deletions(events, subject)) == 1


@pytest.mark.parametrize(("outer", "inner"), [(429, "drop after deleting"), ("drop after deleting", 429), (429, 429)])
def test_of_two_deletions_at_the_same_time_the_refused_one_does_not_make_the_other_forgotten(
    platform: Platform, identity: IdentityFixtures, organization: Organization, subject: str, deleting: Deleting,
    scripted_provider: Any, events: Any, as_bearer: Bearer, outer: int | str, inner: int | str,
) -> None:  # fmt: skip
    """While the provider holds the first request, a second comes and is answered."""
    token = as_bearer(identity.user_token(subject, organization.external_id))
    answers: list[str] = []

    def delete() -> None:
        answers.append(deleting.app.test_client().delete("/v1/users/me", headers=token).get_data(as_text=True))

    def second() -> None:
        scripted_provider.answer = inner
        delete()
        scripted_provider.answer = outer

    scripted_provider.meanwhile = second
    delete()

    assert answers == [BEGUN, BEGUN]
    assert is_marked(platform, subject) == (True, False)
    scripted_provider.answer = 404
    assert usecases.finish_deletions(deleting.relay, AT_ONCE) == 1
    assert len(deletions(events, subject)) == 1


def test_a_refused_deletion_is_a_success_if_another_one_succeeded_meanwhile(
    identity: IdentityFixtures, organization: Organization, subject: str, deleting: Deleting, scripted_provider: Any,
    events: Any, as_bearer: Bearer,
) -> None:  # fmt: skip
    token = as_bearer(identity.user_token(subject, organization.external_id))
    statuses: list[int] = []

    def delete() -> None:
        statuses.append(deleting.app.test_client().delete("/v1/users/me", headers=token).status_code)

    def second() -> None:
        delete()
        scripted_provider.answer = 429

    scripted_provider.meanwhile = second
    delete()

    assert statuses == [204, 204]
    assert len(deletions(events, subject)) == 1


def test_after_a_refusal_the_user_may_ask_again_as_if_for_the_first_time(
    platform: Platform, identity: IdentityFixtures, organization: Organization, subject: str, deleting: Deleting,
    scripted_provider: Any, as_bearer: Bearer,
) -> None:  # fmt: skip
    client, token = deleting.app.test_client(), as_bearer(identity.user_token(subject, organization.external_id))
    scripted_provider.answer = 429
    for _ in range(2):
        assert client.delete("/v1/users/me", headers=token).get_data(as_text=True) == NOT_DELETED
        assert is_marked(platform, subject) == (False, False)
    scripted_provider.answer = 204

    assert client.delete("/v1/users/me", headers=token).status_code == 204


@pytest.mark.parametrize("answer", [204, 429])
def test_a_database_lost_on_the_way_does_not_say_that_nothing_was_written(
    platform: Platform, identity: IdentityFixtures, organization: Organization, subject: str, deleting: Deleting,
    scripted_provider: Any, events: Any, as_bearer: Bearer, answer: int,
) -> None:  # fmt: skip
    """Somebody holds the user's row from the provider's answer on, for longer than we wait."""
    token = as_bearer(identity.user_token(subject, organization.external_id))
    row = text("SELECT id FROM identity.app_user WHERE subject = :subject FOR UPDATE")
    scripted_provider.answer = answer
    with identity.deps.engine.begin() as tx:
        scripted_provider.meanwhile = lambda: tx.execute(row, {"subject": subject})
        unclear = deleting.app.test_client().delete("/v1/users/me", headers=token)

    assert (unclear.status_code, unclear.get_data(as_text=True)) == (503, BEGUN)
    assert "Retry-After" in unclear.headers
    assert is_marked(platform, subject) == (True, False)
    scripted_provider.answer = 404
    assert usecases.finish_deletions(deleting.relay, AT_ONCE) == 1
    assert len(deletions(events, subject)) == 1


CRASHES = {
    # where it dies: (at the provider, begun, done, told) right after the crash; afterwards all is done and told once
    "identity.deletion_begun": (False, True, False, 0),
    "identity.deleted_at_provider": (True, True, False, 0),
    "identity.deletion_finished": (True, True, True, 1),
}


@pytest.mark.parametrize("step", CRASHES)
def test_a_kill_at_any_step_is_finished_by_the_worker_and_told_once(
    platform: Platform, canaille: Any, serve: Any, as_bearer: Bearer, step: str
) -> None:
    """A real provider, real processes, real kill -9: by the crash point, as hard as a power cut."""
    web = platform.web_environment("identity", **canaille.environment())
    worker = platform.environment("identity", **canaille.environment())
    name = f"ada-{uuid4().hex[:8]}"
    organization = _organization(platform, canaille)
    user_id = canaille.add_user(name, organization.external_id, "desk")
    token = canaille.user_token(name)

    with serve({**web, "TIP_CRASH_AT": step}) as (base, served):
        with pytest.raises(requests.ConnectionError):
            requests.delete(f"{base}/v1/users/me", headers=as_bearer(token), timeout=60)
        assert served.wait(30) == -signal.SIGKILL

    gone, begun, done, told = CRASHES[step]
    assert canaille.has_user(user_id) is not gone
    assert is_marked(platform, user_id) == (begun, done)
    assert len(_told(platform, user_id)) == told

    _age_deletions(platform)  # instead of waiting the ten seconds after which an attempt counts as abandoned
    with running("-m", "identity.worker", "scheduler", environment=worker):
        eventually(lambda: is_marked(platform, user_id) == (True, True), 60)
    assert not canaille.has_user(user_id)
    assert len(_told(platform, user_id)) == 1


def test_a_kill_before_a_refusal_is_taken_back_ends_in_a_whole_deletion_too(
    platform: Platform, canaille: Any, scripted_provider: Any, serve: Any, as_bearer: Bearer
) -> None:
    """Nobody was answered, so either outcome is right; half of one would not be."""
    away = {"OIDC_SCIM_URL": "", "OIDC_CLIENT_ID": "", "OIDC_DELETE_TOKEN": "for-tests-only"}
    away["OIDC_DELETE_URL"] = scripted_provider.environment()["OIDC_DELETE_URL"]
    web = platform.web_environment("identity", **canaille.environment() | away)
    relay = platform.environment("identity", **canaille.environment() | away)
    name = f"ada-{uuid4().hex[:8]}"
    user_id = canaille.add_user(name, _organization(platform, canaille).external_id, "desk")
    scripted_provider.answer = 503

    with serve({**web, "TIP_CRASH_AT": "identity.deletion_refused"}) as (base, served):
        with pytest.raises(requests.ConnectionError):
            requests.delete(f"{base}/v1/users/me", headers=as_bearer(canaille.user_token(name)), timeout=60)
        assert served.wait(30) == -signal.SIGKILL
    assert (is_marked(platform, user_id), _told(platform, user_id)) == ((True, False), [])

    deps = dependencies(WorkerConfig.from_env(relay))
    assert usecases.finish_deletions(deps, AT_ONCE) == 0, "the provider still refuses"
    scripted_provider.answer = 204
    assert usecases.finish_deletions(deps, AT_ONCE) == 1
    assert len(_told(platform, user_id)) == 1
    assert scripted_provider.deleted == [f"/admin/users/{user_id}"]
    deps.engine.dispose()


def _organization(platform: Platform, canaille: Any) -> model.Organization:
    environment = platform.administrator_environment("identity", **canaille.environment())
    deps = dependencies(Config.from_env(environment))
    made = usecases.create_organization(deps, "canaille", f"org-{uuid4().hex[:8]}", "Desk")
    deps.engine.dispose()
    return made


def _told(platform: Platform, subject: str) -> list[Any]:
    query = text("SELECT id FROM identity.outbox WHERE event_type = 'user.deleted' AND payload->>'subject' = :subject")
    with platform.admin() as connection:
        return list(connection.execute(query, {"subject": subject}))


def _age_deletions(platform: Platform) -> None:
    with platform.admin() as connection:
        connection.execute(
            text("UPDATE identity.app_user SET deletion_begun_at = deletion_begun_at - interval '1 minute'")
        )
