"""Users who may be deleted, and how far their deletion has come."""

from typing import Any
from uuid import uuid4

from sqlalchemy import text

from identity import usecases
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform


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
