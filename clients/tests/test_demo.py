"""The demo data outlives whatever newcomers try with it."""

from uuid import uuid4

from identity.app import create_app
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.platform_plugin import Platform


def test_a_demo_user_who_deleted_himself_has_a_successor_at_the_next_start(
    platform: Platform, identity: IdentityFixtures
) -> None:
    client = create_app(platform.web_environment("identity")).test_client()
    name, organization_id = f"demo-{uuid4().hex[:8]}", uuid4()

    def status(method: str, token: str) -> int:
        return client.open("/v1/users/me", method=method, headers={"authorization": f"Bearer {token}"}).status_code

    for _ in range(2):
        tokens = identity.ensure_organization(name, organization_id, ())
        assert {status("GET", token) for token in tokens.values()} == {200}
        assert status("DELETE", tokens["admin"]) == 204
        assert status("GET", tokens["admin"]) == 401
