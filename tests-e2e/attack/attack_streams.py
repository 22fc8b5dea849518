"""Thousands of streams of loud tenants; then a quiet tenant's key is revoked, and its streams end within 5 seconds."""

import time
from collections.abc import Iterator

from attack_crowd import GRPC, HTTP, Crowd, Stream, Subscriber
from attack_findings import Findings
from attack_options import Size
from attack_platform import Platform
from attack_progress import Progress
from attack_tenants import Builder, Headers, Tenant, bearer, keyed, unknown_id

PART = "streams"
PROMISED_S = 5.0
WAIT_S = 120.0
QUIET_STREAMS = 20
PER_CALLER = 200
USERS = 25
MOST_TENANTS = 60
KINDS = ("key", "user")


def run(platform: Platform, builder: Builder, size: Size, seed: int, findings: Findings, progress: Progress) -> None:
    quiet = builder.tenant("quiet", trades=False)
    crowd = Crowd(platform.events, platform.stream_target)
    try:
        loud = fill(crowd, builder, size.streams, PART, findings, progress)
        slowest = dict.fromkeys(KINDS, 0.0)
        for number in range(size.revocations):
            kind = KINDS[number % len(KINDS)]
            if findings.chosen(kind):
                seconds = _revoked(crowd, loud, builder, quiet, kind, size.samples > 0, findings)
                slowest[kind] = max(slowest[kind], seconds)
                findings.count("credentials revoked beside them")
        findings.note("seconds until the last stream of a revoked credential ended, at most",
                      {kind: round(seconds, 2) for kind, seconds in slowest.items()})  # fmt: skip
    finally:
        crowd.close()


def fill(
    crowd: Crowd, builder: Builder, wanted: int, part: str, findings: Findings, progress: Progress
) -> list[Stream]:
    """Tenants are added until enough streams are open: no limit of one of them is in the way of the crowd."""
    opened: list[Stream] = []
    refused = 0
    for _ in range(MOST_TENANTS):
        loud = builder.tenant("loud", trades=False)
        before = len(opened)
        for subscribers in _subscribers(builder, loud, wanted):
            made = crowd.open(subscribers[: wanted - len(opened)])
            opened += [stream for stream in made if stream.opened]
            refused += sum(not stream.opened for stream in made)
            progress.at(len(opened), wanted)
            if len(opened) >= wanted or not any(stream.opened for stream in made):
                break
        if len(opened) >= wanted or len(opened) == before:
            break
    findings.note("streams of loud tenants, a token each, half of them over gRPC", len(opened))
    findings.note("streams refused to loud tenants", refused)
    if len(opened) < wanted:
        findings.add(part, "too few streams could be opened", None, f"{len(opened)} of {wanted}")
    return opened


def _subscribers(builder: Builder, loud: Tenant, wanted: int) -> Iterator[list[Subscriber]]:
    """Of each user as many as one may have, each with a token of its own: that many credentials are verified again."""
    accounts, admin = [*loud.accounts.values()], bearer(loud.tokens["admin"])
    for number in range(USERS):
        subject = f"{loud.canary}-user-{number}"
        path = f"/v1/organizations/{loud.id}/memberships/{subject}"
        if builder.answer("PUT", path, admin, {"role": "read_only"}).status >= 400:
            return  # no more users: another tenant goes on
        tokens = [
            builder.identity.user_token(subject, loud.external_id, "read_only") for _ in range(min(PER_CALLER, wanted))
        ]
        yield [
            # The organization named changes nothing: a user's token says which it is.
            Subscriber(accounts[turn % len(accounts)], bearer(token, unknown_id()), _transport(turn))
            for turn, token in enumerate(tokens)
        ]


def _transport(turn: int) -> str:
    return HTTP if turn % 2 else GRPC


def _revoked(
    crowd: Crowd, loud: list[Stream], builder: Builder, quiet: Tenant, kind: str, timed: bool, findings: Findings
) -> float:
    """Seconds until the last stream of the credential had ended."""
    headers, path = _credential(builder, quiet, kind)
    mine = crowd.open([Subscriber(quiet.accounts["paper"], headers, _transport(turn)) for turn in range(QUIET_STREAMS)])
    if not all(stream.opened for stream in mine):
        statuses = {stream.status for stream in mine}
        findings.add(PART, "a quiet tenant cannot open a stream beside loud ones", kind, str(statuses))
        return 0.0
    alive = [stream for stream in loud if stream.ended_at is None]
    if len(alive) < len(loud):
        findings.add(PART, "streams of the crowd ended by themselves", kind, f"{len(loud) - len(alive)} of {len(loud)}")
    builder.call("DELETE", path, bearer(quiet.tokens["admin"]))
    seconds = _all_ended(mine, time.monotonic())
    if seconds > (PROMISED_S if timed else WAIT_S):
        findings.add(PART, "streams outlive their revoked credential", kind, f"{seconds:.1f} s")
    if lost := sum(stream.ended_at is not None for stream in alive):
        findings.add(PART, "streams of others ended with a revoked credential", kind, f"{lost} of {len(alive)}")
    return seconds


def _credential(builder: Builder, quiet: Tenant, kind: str) -> tuple[Headers, str]:
    """A new one, and the path at which it is revoked."""
    admin = bearer(quiet.tokens["admin"])
    if kind == "key":
        body = {"name": "soon revoked", "environment": "paper", "permissions": ["intent:read"]}
        made = builder.call("POST", "/v1/api-keys", admin, body)
        return keyed(made["key"]), f"/v1/api-keys/{made['id']}"
    subject = f"{quiet.canary}-leaving-{unknown_id()[:8]}"
    path = f"/v1/organizations/{quiet.id}/memberships/{subject}"
    builder.call("PUT", path, admin, {"role": "member"})
    return bearer(builder.identity.user_token(subject, quiet.external_id, "member")), path


def _all_ended(streams: list[Stream], began: float) -> float:
    while any(stream.ended_at is None for stream in streams) and time.monotonic() - began < WAIT_S:
        time.sleep(0.05)
    return max((stream.ended_at or time.monotonic()) - began for stream in streams)
