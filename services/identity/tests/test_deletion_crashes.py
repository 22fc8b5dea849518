"""A deletion is whole whatever step a process is killed at."""

import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import requests
from sqlalchemy import text

from identity import model, usecases
from identity.app import dependencies
from identity.config import Config, WorkerConfig
from tip_testing.platform_plugin import Platform
from tip_testing.processes import running
from tip_testing.waiting import eventually

from .user_deletions import is_marked

AT_ONCE = timedelta(0)
Bearer = Callable[[str], dict[str, str]]


CRASHES = {
    # where it dies: (at the provider, begun, done, published) right after the crash; afterwards all is done and
    # published once
    "identity.deletion_begun": (False, True, False, 0),
    "identity.deleted_at_provider": (True, True, False, 0),
    "identity.deletion_finished": (True, True, True, 1),
}


@pytest.mark.parametrize("step", CRASHES)
def test_a_kill_at_any_step_is_finished_by_the_worker_and_published_once(
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
        assert served.wait(60) == -signal.SIGKILL

    gone, begun, done, published = CRASHES[step]
    assert canaille.has_user(user_id) is not gone
    assert is_marked(platform, user_id) == (begun, done)
    assert len(_published(platform, user_id)) == published

    _age_deletions(platform)  # instead of waiting the ten seconds after which an attempt counts as abandoned
    with running("-m", "identity.worker", "scheduler", environment=worker):
        eventually(lambda: is_marked(platform, user_id) == (True, True), 60)
    assert not canaille.has_user(user_id)
    assert len(_published(platform, user_id)) == 1


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
        assert served.wait(60) == -signal.SIGKILL
    assert (is_marked(platform, user_id), _published(platform, user_id)) == ((True, False), [])

    deps = dependencies(WorkerConfig.from_env(relay))
    assert usecases.finish_deletions(deps, AT_ONCE) == 0, "the provider still refuses"
    scripted_provider.answer = 204
    assert usecases.finish_deletions(deps, AT_ONCE) == 1
    assert len(_published(platform, user_id)) == 1
    assert scripted_provider.deleted == [f"/admin/users/{user_id}"]
    deps.engine.dispose()


def _organization(platform: Platform, canaille: Any) -> model.Organization:
    environment = platform.administrator_environment("identity", **canaille.environment())
    deps = dependencies(Config.from_env(environment))
    made = usecases.create_organization(deps, "canaille", f"org-{uuid4().hex[:8]}", "Desk")
    deps.engine.dispose()
    return made


def _published(platform: Platform, subject: str) -> list[Any]:
    query = text("SELECT id FROM identity.outbox WHERE event_type = 'user.deleted' AND payload->>'subject' = :subject")
    with platform.admin() as connection:
        return list(connection.execute(query, {"subject": subject}))


def _age_deletions(platform: Platform) -> None:
    with platform.admin() as connection:
        connection.execute(
            text("UPDATE identity.app_user SET deletion_begun_at = deletion_begun_at - interval '1 minute'")
        )
