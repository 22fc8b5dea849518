"""The peer of the submit benchmark: FastAPI, asyncpg and uvicorn; the same checks and writes in one database call.

Around it the same work in its leanest form: a request id, a count against a limit, two metrics and one log line.
"""

import hashlib
import os
import secrets
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any, Literal
from uuid import UUID

from bench.submit_stage import Stage
from tip_local.processes import free_port

FUNCTION = """
CREATE SCHEMA IF NOT EXISTS peer;
CREATE OR REPLACE FUNCTION peer.submit(
    of_prefix text, of_digest bytea, of_account uuid, of_symbol text, of_side text, of_spec json, of_quantity numeric,
    of_payload json) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    found_key record; found_account record; rules record; head record;
    new_intent uuid := gen_random_uuid(); new_action uuid := gen_random_uuid(); moment timestamptz := clock_timestamp();
    checks json; digest bytea;
BEGIN
    SELECT * INTO found_key FROM identity_api.usable_api_key k
    WHERE k.prefix = of_prefix AND k.key_digest = of_digest;
    IF NOT FOUND THEN RETURN '{"status": 401}'; END IF;
    IF NOT 'intent:edit' = ANY(found_key.permissions) THEN RETURN '{"status": 403}'; END IF;
    SELECT * INTO found_account FROM accounts_api.account a WHERE a.id = of_account;
    IF NOT FOUND OR found_account.organization_id <> found_key.organization_id THEN RETURN '{"status": 404}'; END IF;
    IF found_account.environment <> found_key.environment THEN RETURN '{"status": 403}'; END IF;
    IF found_account.environment = 'live' AND NOT 'trading_live' = ANY(found_key.entitlements) THEN
        RETURN '{"status": 403}';
    END IF;
    SELECT * INTO rules FROM controls_api.rules(found_account.organization_id, of_account, of_symbol);
    IF found_account.disabled OR rules.manually_disabled OR rules.account_trading_state = 'HALTED'
        OR rules.organization_trading_state = 'HALTED' THEN
        RETURN '{"status": 422}';
    END IF;
    checks := json_build_object('decision', 'ALLOWED', 'checks', json_build_array(
        json_build_object('control', 'account', 'version', found_account.version, 'outcome', 'PASSED')));
    digest := sha256(convert_to(concat(new_action, new_intent, of_payload, checks, moment), 'UTF8'));
    INSERT INTO intents.intent (account_id, id, organization_id, environment, symbol, order_side, route_strategy, spec,
        quantity, status, created_at, updated_at, next_attempt_at)
    VALUES (of_account, new_intent, found_account.organization_id, found_account.environment, of_symbol, of_side,
        'AUTO', of_spec, of_quantity, 'PENDING', moment, moment, moment);
    INSERT INTO intents.outbox (event_id, event_type, payload)
    VALUES (gen_random_uuid(), 'intent.submitted', jsonb_build_object('account_id', of_account, 'organization_id',
        found_account.organization_id, 'intent_id', new_intent, 'action_id', new_action, 'occurred_at', moment));
    INSERT INTO intents.account_head AS h (account_id, last_sequence, last_hash, previous_hash)
    VALUES (of_account, 1, digest, sha256(''))
    ON CONFLICT (account_id) DO UPDATE SET last_sequence = h.last_sequence + 1, previous_hash = h.last_hash,
        last_hash = sha256(h.last_hash || int8send(h.last_sequence + 1) || digest)
    RETURNING last_sequence, last_hash, previous_hash INTO head;
    INSERT INTO intents.action (account_id, sequence, id, organization_id, environment, intent_id, type, payload,
        symbol, order_side, spec, route_strategy, actor_type, actor_id, controls, to_status, intent_created_at,
        previous_hash, hash, created_at)
    VALUES (of_account, head.last_sequence, new_action, found_account.organization_id, found_account.environment,
        new_intent, 'CREATE', of_payload, of_symbol, of_side, of_spec, 'AUTO', 'api_key', found_key.id::text, checks,
        'PENDING', moment, head.previous_hash, head.last_hash, moment);
    RETURN jsonb_build_object('status', 201, 'id', new_action, 'intent_id', new_intent, 'sequence', head.last_sequence,
        'organization_id', found_account.organization_id, 'environment', found_account.environment, 'actor',
        found_key.id, 'controls', checks, 'created_at', moment, 'hash', encode(head.last_hash, 'hex'));
END $$;
GRANT USAGE ON SCHEMA peer TO tip_intents;
"""


@contextmanager
def peer(on: Stage) -> Iterator[str]:
    """The peer as a web process: two workers, uvloop and httptools, its own access log off."""
    port = free_port()
    options = ["--workers", "2", "--loop", "uvloop", "--http", "httptools", "--no-access-log", "--port", str(port)]
    log = str(on.directory / "peer-requests.log")
    command = ["-m", "uvicorn", "--factory", *options, "bench.submit_peer:create_app"]
    with on.web("peer", command, port, PEER_LOG=log, DATABASE_URL=on.admin_url) as base:
        yield base


def create_app() -> Any:
    import asyncpg
    import orjson
    from fastapi import FastAPI, Header, HTTPException, Response
    from prometheus_client import Counter, Histogram
    from pydantic import BaseModel, ConfigDict, StringConstraints

    decimal = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,15}(\.[0-9]{1,9})?$")]

    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True)

    class LimitTerms(Strict):
        quantity: decimal  # type: ignore[valid-type]
        limit_price: decimal  # type: ignore[valid-type]
        time_in_force: Literal["DAY", "GTC", "IOC", "FOK"] = "DAY"

    class Spec(Strict):
        Limit: LimitTerms

    class Payload(Strict):
        symbol: Annotated[str, StringConstraints(pattern=r"^[A-Z0-9][A-Z0-9._:/-]{0,31}$")]
        order_side: Literal["BUY", "SELL"]
        route_strategy: Literal["AUTO", "DIRECT"] = "AUTO"
        spec: Spec

    class Command(Strict):
        type: Literal["CREATE"]
        payload: Payload

    class Body(Strict):
        command: Command

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=8, max_size=16) as pool:
            app.state.pool = pool
            yield

    app = FastAPI(lifespan=lifespan)
    answered = Counter("peer_requests_total", "Requests answered.", ["route", "status"])
    seconds = Histogram("peer_request_seconds", "Time to answer.", ["route"])
    counted: dict[str, int] = {}
    log = open(os.environ["PEER_LOG"], "a", buffering=1)  # noqa: SIM115 - for as long as the process lives

    @app.get("/health/live")
    async def live() -> dict[str, str]:
        return {"status": "live"}

    @app.post("/v1/accounts/{account_id}/intents", status_code=201)
    async def submit(account_id: UUID, body: Body, x_api_key: Annotated[str, Header()]) -> Response:
        started, request_id = time.perf_counter(), secrets.token_hex(16)
        counted[x_api_key] = counted.get(x_api_key, 0) + 1
        if counted[x_api_key] > 100_000_000:
            raise HTTPException(429)
        payload = body.command.payload
        spec = payload.spec.model_dump()
        found = orjson.loads(
            await app.state.pool.fetchval(
                "SELECT peer.submit($1, $2, $3, $4, $5, $6, $7::text::numeric, $8)",
                x_api_key[: x_api_key.index("_", 4) + 9],
                hashlib.sha256(x_api_key.encode()).digest(),
                account_id,
                payload.symbol,
                payload.order_side,
                orjson.dumps(spec).decode(),
                payload.spec.Limit.quantity,
                orjson.dumps(payload.model_dump()).decode(),
            )
        )
        if found["status"] != 201:
            raise HTTPException(found["status"])
        action = {
            **found,
            "account_id": str(account_id),
            "command": {"type": "CREATE", "payload": payload.model_dump()},
            "symbol": payload.symbol,
            "order_side": payload.order_side,
            "spec": spec,
            "route_strategy": payload.route_strategy,
            "state": {"status": "PENDING", "filled_quantity": "0", "leaves_quantity": payload.spec.Limit.quantity},
        }
        took = time.perf_counter() - started
        answered.labels("submit", 201).inc()
        seconds.labels("submit").observe(took)
        path = f"/v1/accounts/{account_id}/intents"
        line = {"event": "request", "path": path, "status": 201, "request_id": request_id, "ms": took * 1000}
        log.write(orjson.dumps({**line, "at": time.time()}).decode() + "\n")
        headers = {"Location": f"{path}/{found['intent_id']}", "X-Request-Id": request_id, "Cache-Control": "no-store"}
        return Response(orjson.dumps(action), 201, headers, "application/json")

    return app


if __name__ == "__main__":
    sys.exit("bench: run bench.submit, which starts this")
