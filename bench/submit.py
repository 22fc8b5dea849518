"""Submitting intents: `python -m bench.submit`, or `make bench NAME=submit`.

Subject: the intents service in gunicorn with everything on (authentication, permissions, entitlements, controls, rate
limit, metrics, logs). Reference 1: pgbench with the statements of a submit sent one by one. Reference 2: FastAPI,
asyncpg and uvicorn doing the same work with the same checks in one call of a server-side function (submit_peer).
Nothing else may run meanwhile. `--quick` runs one short pair each, to see that it works.
"""

import statistics
import sys

from bench.harness import Ratio, pairs, report
from bench.load import Load, wrk
from bench.submit_peer import FUNCTION, peer
from bench.submit_stage import Stage, stage
from chassis import keys

CONNECTIONS = (16, 64)

# The statements of a submit as an application would send them one by one; `bench_account` numbers the accounts.
TRANSACTION = """
\\set n random(1, {accounts})
BEGIN;
SELECT id, key_digest, organization_id, environment, permissions, entitlements FROM identity_api.usable_api_key
WHERE prefix = '{prefix}';
SELECT id AS account_id, organization_id, environment, time_zone, disabled, version, gen_random_uuid() AS intent_id,
    gen_random_uuid() AS action_id
FROM accounts_api.account WHERE id = (SELECT id FROM bench_account WHERE n = :n) \\gset
SELECT * FROM controls_api.rules(:organization_id::uuid, :account_id::uuid, 'AAPL');
INSERT INTO intents.intent (account_id, id, organization_id, environment, symbol, order_side, route_strategy, spec,
    quantity, status, created_at, updated_at, next_attempt_at)
VALUES (:account_id, :intent_id, :organization_id, 'live', 'AAPL', 'BUY', 'AUTO', '{spec}', 10, 'PENDING', now(),
    now(), now());
INSERT INTO intents.outbox (event_id, event_type, payload)
VALUES (gen_random_uuid(), 'intent.submitted', jsonb_build_object('account_id', :account_id::uuid,
    'organization_id', :organization_id::uuid, 'intent_id', :intent_id::uuid, 'action_id', :action_id::uuid));
INSERT INTO intents.account_head AS head (account_id, last_sequence, last_hash, previous_hash)
VALUES (:account_id, 1, sha256('x'), sha256(''))
ON CONFLICT (account_id) DO UPDATE SET last_sequence = head.last_sequence + 1, previous_hash = head.last_hash,
    last_hash = sha256(head.last_hash || int8send(head.last_sequence + 1))
RETURNING last_sequence \\gset
INSERT INTO intents.action (account_id, sequence, id, organization_id, environment, intent_id, type, payload, symbol,
    order_side, spec, route_strategy, actor_type, actor_id, controls, to_status, intent_created_at, previous_hash, hash,
    created_at)
VALUES (:account_id, :last_sequence, :action_id, :organization_id, 'live', :intent_id, 'CREATE',
    '{{"symbol": "AAPL", "order_side": "BUY", "spec": {spec}}}', 'AAPL', 'BUY', '{spec}', 'AUTO', 'api_key', 'x',
    '{{"decision": "ALLOWED", "checks": []}}', 'PENDING', now(), sha256(''), sha256('x'), now());
COMMIT;
"""
SPEC = '{"Limit": {"time_in_force": "DAY", "quantity": "10", "limit_price": "99.50"}}'


def transaction(on: Stage) -> str:
    """The script for pgbench, and the numbers of the accounts where it finds them."""
    values = ", ".join(f"({number}, '{account}')" for number, account in enumerate(on.accounts, 1))
    on.execute(
        f"CREATE TABLE bench_account (n integer PRIMARY KEY, id uuid); INSERT INTO bench_account VALUES {values}"
    )
    return TRANSACTION.format(accounts=len(on.accounts), prefix=keys.prefix(on.api_key), spec=SPEC)


def measure(on: Stage, count: int, seconds: int) -> list[Ratio]:
    script = transaction(on)
    latencies: dict[int, list[Load]] = {connections: [] for connections in CONNECTIONS}

    def load(base: str, connections: int) -> Load:
        found = wrk(base, connections=connections, seconds=seconds, script=on.script)
        if found.refused:
            sys.exit(f"bench: {found.refused} requests were refused")
        return found

    found: list[Ratio] = []
    with on.intents() as ours, peer(on) as other:
        for base in (ours, other):
            load(base, 16)  # warm: connections, plans, caches
        for connections in CONNECTIONS:

            def subject(at: int = connections) -> float:
                latencies[at].append(load(ours, at))
                return latencies[at][-1].requests_per_second

            def statements(at: int = connections) -> float:
                return on.pgbench(script, at, seconds)

            def fastapi(at: int = connections) -> float:
                return load(other, at).requests_per_second

            name = f"submit, {connections} connections"
            found.append(pairs(f"{name} / pgbench one by one", statements, subject, unit="/s", count=count, goal=0.60))
            found.append(pairs(f"{name} / FastAPI in one call", fastapi, subject, unit="/s", count=count, goal=1.0))
    p50 = statistics.median(load.p50_ms for load in latencies[16])
    p99 = statistics.median(load.p99_ms for load in latencies[16])
    found.append(Ratio("submit, 16 connections, p99 / p50", "ms", p50, p99, 0.0, 3.0, at_most=True))
    return found


def main() -> None:
    quick = "--quick" in sys.argv
    with stage() as on:
        on.execute(FUNCTION)
        found = measure(on, 1 if quick else 5, 4 if quick else 8)
    if quick:
        for ratio in found:
            print(f"{ratio.name}: {ratio.reference:,.0f} -> {ratio.subject:,.0f} {ratio.unit}, {ratio.ratio:.2f}")
        return
    report(
        "Submit",
        found,
        versions=("python", "flask", "gunicorn", "psycopg2-binary", "fastapi", "uvicorn", "asyncpg"),
        command="make bench NAME=submit",
        notes="Durable Postgres, 256 live accounts; two gunicorn workers, two uvicorn workers.",
    )


if __name__ == "__main__":
    main()
