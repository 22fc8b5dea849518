"""Relays killed as hard as a power cut, a queue that forgets everything: nothing is lost, nothing falsely failed."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest
import redis

from chassis.outbox import Outbox
from tip_local.valkey import EmbeddedValkey
from tip_testing.outbox import age_claims, append, inversions, rows, statuses
from tip_testing.platform_plugin import Platform
from tip_testing.processes import Running, running
from tip_testing.servers_plugin import PostgresServer, ValkeyServer
from tip_testing.waiting import eventually

Start = Callable[..., Running]


@pytest.fixture
def start(platform: Platform, valkey_server: ValkeyServer) -> Iterator[Start]:
    """Starts relay processes; `crash_at` names the step at which one kills itself, `stop_at` where one freezes."""
    queue = f"tip.test.{uuid4().hex}"
    with ExitStack() as started:

        def start(
            crash_at: str = "", stop_at: str = "", attempt_limit: int = 3, queues: str = valkey_server.url
        ) -> Running:
            script = str(Path(__file__).with_name("relay_process.py"))
            arguments = [platform.database_url("identity"), queues, queue, str(attempt_limit)]
            environment = {"TIP_CRASH_AT": crash_at, "TIP_STOP_AT": stop_at}
            return started.enter_context(running(script, *arguments, environment=environment))

        yield start


def all_completed(outbox: Outbox) -> Callable[[], bool]:
    return lambda: set(statuses(outbox)) == {"completed"}


def dies(process: Running) -> bool:
    return process.wait() == -signal.SIGKILL


def test_two_relays_share_the_work_and_complete_each_row_once(outbox: Outbox, start: Start) -> None:
    append(outbox, *["a.created"] * 300)
    start(), start()

    eventually(all_completed(outbox))

    assert [row.attempts for row in rows(outbox)] == [1] * 300
    assert sorted(row.position for row in rows(outbox)) == list(range(1, 301))


def test_a_relay_killed_in_the_middle_is_replaced_after_five_seconds(outbox: Outbox, start: Start) -> None:
    append(outbox, *["a.created"] * 3)
    assert dies(start(crash_at="relay.after_claim"))
    assert statuses(outbox) == {"processing": 3}
    start()

    eventually(all_completed(outbox))

    waited = [row.settled_at - row.created_at for row in rows(outbox)]
    assert [row.attempts for row in rows(outbox)] == [2] * 3
    assert min(waited).total_seconds() >= 5


def test_what_a_relay_published_and_did_not_settle_is_published_again(outbox: Outbox, start: Start) -> None:
    append(outbox, *["a.created"] * 3)
    assert dies(start(crash_at="relay.after_publish"))
    assert statuses(outbox) == {"processing": 3}
    age_claims(outbox, 6)
    start()

    eventually(all_completed(outbox))

    assert [row.attempts for row in rows(outbox)] == [2] * 3


def test_a_row_that_kills_its_worker_is_failed_at_the_limit_and_its_neighbours_pass(
    outbox: Outbox, start: Start
) -> None:
    append(outbox, "poison.created")
    for _ in range(2):
        assert dies(start(attempt_limit=2))
        age_claims(outbox, 6)
    append(outbox, "a.created")
    start(attempt_limit=2)

    eventually(lambda: statuses(outbox) == {"failed": 1, "completed": 1})

    assert rows(outbox)[0].last_error == "worker_lost"


def test_a_stopped_relay_that_comes_back_settles_nothing_it_has_lost(outbox: Outbox, start: Start) -> None:
    append(outbox, "a.created")
    sleeper = start(stop_at="relay.after_publish")
    eventually(sleeper.is_frozen)
    assert statuses(outbox) == {"processing": 1}
    start()
    eventually(all_completed(outbox))
    settled = rows(outbox)[0].settled_at

    sleeper.thaw()
    eventually(lambda: "outbox_claim_lost" in sleeper.output())

    assert (rows(outbox)[0].settled_at, rows(outbox)[0].attempts) == (settled, 2)


def test_relays_that_die_and_freeze_over_the_same_rows_leave_the_feed_in_order(outbox: Outbox, start: Start) -> None:
    append(outbox, "a.created", "a.updated", key="account-1")
    assert dies(start(crash_at="relay.after_claim", attempt_limit=10))
    age_claims(outbox, 6)
    holds_both = start(stop_at="relay.after_publish", attempt_limit=10)
    eventually(holds_both.is_frozen)
    age_claims(outbox, 6)
    holds_the_first = start(stop_at="relay.after_claim", attempt_limit=10)
    eventually(holds_the_first.is_frozen)
    assert len({row.claim_token for row in rows(outbox)}) == 2

    holds_both.thaw()
    [later] = append(outbox, "b.created")
    eventually(lambda: rows(outbox)[-1].status == "completed")  # so it has settled what it held, and gone on
    holds_the_first.thaw()
    eventually(all_completed(outbox))

    assert rows(outbox)[-1].id == later
    assert inversions(outbox) == []


def test_a_queue_flushed_and_restarted_during_the_work_loses_no_row(
    outbox: Outbox, start: Start, valkey_server: ValkeyServer
) -> None:
    start(), start()
    server = redis.Redis.from_url(valkey_server.url)
    for _ in range(5):
        append(outbox, *["a.created"] * 40)
        server.flushall()
    if valkey_server.embedded:
        valkey_server.embedded.stop()
        append(outbox, *["a.created"] * 40)
        time.sleep(1)
        valkey_server.embedded.start()
    server.close()

    eventually(all_completed(outbox))

    assert {row.status for row in rows(outbox)} == {"completed"}
    assert max(row.attempts for row in rows(outbox)) <= 2


def test_a_queue_that_accepts_and_never_answers_burns_no_attempts(
    outbox: Outbox, start: Start, server_directory: Path
) -> None:
    with EmbeddedValkey(server_directory / f"mute-{uuid4().hex}", fast=True) as server:
        append(outbox, "a.created")
        start(attempt_limit=2, queues=server.url), start(attempt_limit=2, queues=server.url)
        eventually(all_completed(outbox))
        os.kill(server.pid or 0, signal.SIGSTOP)  # the kernel still accepts for it
        try:
            append(outbox, *["a.created"] * 30)
            began, seen = time.monotonic(), set()
            while time.monotonic() - began < 12.5:
                seen |= {(row.status, row.attempts) for row in rows(outbox)[1:]}
                time.sleep(0.05)
        finally:
            os.kill(server.pid or 0, signal.SIGCONT)
        eventually(all_completed(outbox))

    assert seen == {("pending", 0), ("processing", 1)}
    assert [row.attempts for row in rows(outbox)] == [1] * 31


def test_a_database_restarted_during_the_work_loses_no_row(
    outbox: Outbox, start: Start, postgres_server: PostgresServer
) -> None:
    if postgres_server.embedded is None:
        pytest.skip("an existing Postgres server is used, and it is not ours to restart")
    start(), start()
    append(outbox, *["a.created"] * 100)
    postgres_server.embedded.stop()
    postgres_server.embedded.start()
    outbox.engine.dispose()
    append(outbox, *["a.created"] * 100)

    eventually(all_completed(outbox))

    assert len(rows(outbox)) == 200
