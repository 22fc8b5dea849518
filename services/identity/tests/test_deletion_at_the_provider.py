"""A user is deleted at the provider first, then here, whatever the provider answers."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from identity import usecases
from identity.app import create_app, dependencies
from identity.config import Config, WorkerConfig
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

from .user_deletions import deletions, is_marked, new_member

AT_ONCE = timedelta(0)
Bearer = Callable[[str], dict[str, str]]


@pytest.fixture(scope="module")
def organization(identity: IdentityFixtures) -> Organization:
    return identity.organization()


@pytest.fixture
def subject(identity: IdentityFixtures, organization: Organization) -> str:
    """A member who may be deleted."""
    return new_member(identity, organization)


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
def test_a_provider_that_may_have_deleted_is_called_again_by_the_worker(
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
    """The provider deletes and its answer is lost; the user tries again and now the provider is too busy."""
    client, token = deleting.app.test_client(), as_bearer(identity.user_token(subject, organization.external_id))
    scripted_provider.answer = "drop after deleting"
    lost = client.delete("/v1/users/me", headers=token)
    scripted_provider.answer = refusal
    retried = client.delete("/v1/users/me", headers=token)

    assert is_marked(platform, subject) == (True, False)
    assert scripted_provider.deleted == [f"/admin/users/{subject}"]
    assert [(answer.status_code, answer.get_data(as_text=True)) for answer in (lost, retried)] == [(503, BEGUN)] * 2
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


def test_after_a_refusal_the_user_may_try_again_as_if_for_the_first_time(
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
