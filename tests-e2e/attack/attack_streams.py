"""Thousands of streams of loud tenants; then a quiet tenant's key is revoked, and its streams end within 5 seconds."""

import time
from collections.abc import Iterator

from attack_crowd import Crowd, Stream
from attack_findings import Findings
from attack_options import Size
from attack_platform import Platform
from attack_tenants import Builder, Headers, Tenant, bearer, keyed, unknown_id

PART = "streams"
PROMISED_S = 5.0
WAIT_S = 120.0
QUIET_STREAMS = 20
PER_CALLER = 200
USERS = 25
MOST_TENANTS = 60


def run(platform: Platform, builder: Builder, size: Size, seed: int, case: str | None, findings: Findings) -> None:
    quiet = builder.tenant("quiet", trades=False)
    crowd = Crowd(platform.events)
    try:
        opened = fill(crowd, builder, size.streams, findings)
        findings.note("streams of loud tenants", opened)
        for word in ("key", "user"):
            _revoked(crowd, builder, quiet, word, size.samples > 0, findings)
    finally:
        crowd.close()


def fill(crowd: Crowd, builder: Builder, wanted: int, findings: Findings) -> int:
    """Tenants are added until enough streams are open: no limit of one of them is in the way of the crowd."""
    opened = refused = 0
    for _ in range(MOST_TENANTS):
        loud = builder.tenant("loud", trades=False)
        before = opened
        for requests in _requests(builder, loud):
            made = crowd.open(requests[: wanted - opened])
            opened += sum(stream.opened for stream in made)
            refused += sum(not stream.opened for stream in made)
            if opened >= wanted or not any(stream.opened for stream in made):
                break
        if opened >= wanted or opened == before:
            break
    findings.note("streams refused to loud tenants", refused)
    if opened < min(wanted, PER_CALLER // 10):
        findings.add(PART, "too few streams could be opened to attack anything", "0", f"{opened} of {wanted}")
    return opened


def _requests(builder: Builder, loud: Tenant) -> Iterator[list[tuple[str, Headers]]]:
    """Of each user as many as one may have, each with another x-organization-id, which changes nothing."""
    account = loud.accounts["paper"]
    admin = bearer(loud.tokens["admin"])
    for number in range(USERS):
        subject = f"{loud.canary}-user-{number}"
        path = f"/v1/organizations/{loud.id}/memberships/{subject}"
        if builder.answer("PUT", path, admin, {"role": "read_only"}).status >= 400:
            return  # no more users: another tenant goes on
        token = builder.world.user_token(subject, loud.external_id, "read_only")
        yield [(account, bearer(token, unknown_id())) for _ in range(PER_CALLER)]


def _revoked(crowd: Crowd, builder: Builder, quiet: Tenant, word: str, timed: bool, findings: Findings) -> None:
    admin = bearer(quiet.tokens["admin"])
    if word == "key":
        body = {"name": "soon revoked", "environment": "paper", "permissions": ["intent:read"]}
        made = builder.call("POST", "/v1/api-keys", admin, body)
        headers, path = keyed(made["key"]), f"/v1/api-keys/{made['id']}"
    else:
        path = f"/v1/organizations/{quiet.id}/memberships/{quiet.canary}-leaving"
        builder.call("PUT", path, admin, {"role": "member"})
        headers = bearer(builder.world.user_token(f"{quiet.canary}-leaving", quiet.external_id, "member"))
    others = [stream for stream in crowd.streams if stream.opened and stream.ended_at is None]
    mine = crowd.open([(quiet.accounts["paper"], headers)] * QUIET_STREAMS)
    if not all(stream.opened for stream in mine):
        statuses = {stream.status for stream in mine}
        findings.add(PART, "a quiet tenant cannot open a stream beside loud ones", word, str(statuses))
        return
    builder.call("DELETE", path, admin)
    began = time.monotonic()
    seconds = _all_ended(mine, began)
    findings.note(f"seconds until the last stream of a revoked {word} ended", round(seconds, 2))
    if seconds > (PROMISED_S if timed else WAIT_S):
        findings.add(PART, "streams outlive their revoked credential", word, f"{seconds:.1f} s")
    lost = sum(stream.ended_at is not None for stream in others)
    if lost:
        findings.add(PART, "streams of others ended with a revoked credential", word, f"{lost} of {len(others)}")


def _all_ended(streams: list[Stream], began: float) -> float:
    while any(stream.ended_at is None for stream in streams) and time.monotonic() - began < WAIT_S:
        time.sleep(0.05)
    return max((stream.ended_at or time.monotonic()) - began for stream in streams)
