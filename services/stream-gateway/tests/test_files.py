"""A process may have only so many files open, and connections are files: streams are no more than fit."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from uuid import UUID

from tip_local.identity_seed import add_account
from tip_testing import raw_http
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

from .gateway_process import Gateway, StartGateway


@contextmanager
def opened(gateway: Gateway, api_key: str, account_id: UUID) -> Iterator[int]:
    """A stream whose connection is left alone once the status is there, whatever it says."""
    lines = [f"GET /v1/accounts/{account_id}/events HTTP/1.1", "Host: tip", f"x-api-key: {api_key}"]
    with raw_http.opened(int(gateway.environment["EVENTS_PORT"])) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        yield _status(connection)


def _status(connection: socket.socket) -> int:
    line = b""
    while b"\r\n" not in line:
        received = connection.recv(4096)
        assert received, "closed without an answer"
        line += received
    return int(line.split(b" ", 2)[1])


def keys_of(organization: Organization) -> list[str]:
    """For 300 streams: more than one caller may have."""
    return [organization.api_keys["paper"], organization.api_keys["paper_read_only"]] * 150


def test_with_few_files_a_tenant_that_wants_all_of_them_leaves_a_stream_for_another(
    start_gateway: StartGateway, platform: Platform, identity: IdentityFixtures, acme: Organization, account_id: UUID
) -> None:
    gateway = start_gateway(open_files=(256, 256))
    other = identity.organization()
    with platform.admin() as admin:
        others_account = add_account(admin, other.id)

    with ExitStack() as held:
        crowd = [held.enter_context(opened(gateway, api_key, account_id)) for api_key in keys_of(acme)]
        single = held.enter_context(opened(gateway, other.api_keys["paper"], others_account))

    assert single == 200
    assert set(crowd) == {200, 429} and crowd.count(200) > 50
    assert "too_few_open_files" in gateway.log


def test_a_soft_limit_of_files_limits_nobody(start_gateway: StartGateway, acme: Organization, account_id: UUID) -> None:
    gateway = start_gateway(open_files=(256, 2048), STREAMS_PER_PROCESS="1000")

    with ExitStack() as held:
        crowd = [held.enter_context(opened(gateway, api_key, account_id)) for api_key in keys_of(acme)]

    assert set(crowd) == {200}
    assert "too_few_open_files" not in gateway.log
