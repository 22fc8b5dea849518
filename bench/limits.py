"""What limits cost a submit: `python -m bench.limits`, or `make bench NAME=limits`.

Reference 1: submits on accounts without controls; subject: on accounts of the same organization with every limit set,
none of which refuses. Reference 2: submits on an account with every limit set; subject: on one that has had a million
actions today besides. Nothing else may run meanwhile. `--quick` runs one short pair each, to see that it works.
"""

import sys
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import NullPool, create_engine

from bench.harness import Ratio, pairs, report
from bench.load import wrk
from bench.submit_stage import Stage, stage
from chassis import db
from tip_local.identity_seed import add_account

CONNECTIONS = 64
ACTIONS = 1_000_000
AN_HOUR = "3600"  # how old a price may be here: nobody reads prices while it is measured

LIMITS = """
INSERT INTO controls.account_limits (account_id, organization_id, max_quantity, max_notional, price_collar_bps,
    max_orders_per_minute, max_orders_per_day, max_position_quantity, max_position_notional, max_open_orders,
    allow_short, max_gross_exposure, max_daily_loss, allowed_symbols, denied_symbols)
SELECT id, organization_id, 1e9, 1e12, 5000, 1000000, 1000000000, 1e12, 1e14, 1000000000, false, 1e14, 1e9,
    '{{AAPL}}', '{{TSLA}}' FROM accounts.account WHERE id = ANY('{{{accounts}}}');
INSERT INTO controls.symbol_limits (account_id, organization_id, symbol, max_quantity, max_notional, price_collar_bps,
    max_orders_per_minute, max_orders_per_day, max_position_quantity, max_position_notional, max_open_orders,
    allow_short)
SELECT id, organization_id, 'AAPL', 1e9, 1e12, 5000, 1000000, 1000000000, 1e12, 1e14, 1000000000, false
FROM accounts.account WHERE id = ANY('{{{accounts}}}');
INSERT INTO intents.position (account_id, organization_id, symbol, quantity, last_price, updated_at, price_at,
    price_source)
SELECT id, organization_id, symbol, 5, 100, now(), now(), 'fill'
FROM accounts.account, unnest(ARRAY['AAPL', 'MSFT']) symbol WHERE id = ANY('{{{accounts}}}');
INSERT INTO intents.balance (account_id, organization_id, currency, cash, equity, buying_power, updated_at)
SELECT id, organization_id, 'USD', 1, 1000, 1, now() FROM accounts.account WHERE id = ANY('{{{accounts}}}');
"""
HISTORY = """
INSERT INTO intents.action (account_id, sequence, id, organization_id, environment, intent_id, type, payload, symbol,
    order_side, spec, route_strategy, actor_type, actor_id, controls, to_status, intent_created_at, previous_hash, hash,
    created_at, account_orders, symbol_orders)
SELECT a.id, n, gen_random_uuid(), a.organization_id, 'live', gen_random_uuid(), 'CREATE', '{{}}', 'AAPL', 'BUY',
    '{{"Market": {{"quantity": "1"}}}}', 'AUTO', 'api_key', 'x', '{{}}', 'PENDING', moment, sha256('x'), sha256('x'),
    moment, n, n
FROM accounts.account a, generate_series(1, {actions}) n,
    LATERAL (SELECT now() - interval '23 hours' * (1 - n::numeric / {actions}) AS moment) made
WHERE a.id = '{account}';
INSERT INTO intents.account_head (account_id, organization_id, last_sequence, last_hash, previous_hash)
SELECT id, organization_id, {actions}, sha256('x'), sha256('x') FROM accounts.account WHERE id = '{account}';
INSERT INTO intents.order_total (account_id, symbol, organization_id, orders, open_orders, open_buy_quantity,
    open_sell_quantity)
SELECT id, symbol, organization_id, {actions}, 0, 0, 0 FROM accounts.account, unnest(ARRAY['', 'AAPL']) symbol
WHERE id = '{account}';
ANALYZE intents.action;
"""


def script(on: Stage, accounts: Sequence[UUID]) -> str:
    """The Lua of wrk for these accounts."""
    shown = ", ".join(f'"{account}"' for account in on.accounts)
    return on.script.replace(shown, ", ".join(f'"{account}"' for account in accounts))


def more_accounts(on: Stage, count: int) -> list[UUID]:
    engine = create_engine(db.with_driver(on.admin_url), poolclass=NullPool)
    with engine.begin() as connection:
        whose = connection.exec_driver_sql(
            "SELECT organization_id FROM accounts.account WHERE id = %s", (str(on.accounts[0]),)
        ).scalar_one()
        return [add_account(connection, whose, "live") for _ in range(count)]


def limit(on: Stage, accounts: Sequence[UUID]) -> None:
    on.execute(LIMITS.format(accounts=",".join(map(str, accounts))))


def measure(on: Stage, count: int, seconds: int, actions: int) -> list[Ratio]:
    limited, (fresh, busy) = more_accounts(on, len(on.accounts)), more_accounts(on, 2)
    on.execute(HISTORY.format(account=busy, actions=actions))
    limit(on, [*limited, fresh, busy])
    with on.intents(REFERENCE_PRICE_MAX_AGE_SECONDS=AN_HOUR) as base:

        def rate(accounts: Sequence[UUID]) -> float:
            found = wrk(base, connections=CONNECTIONS, seconds=seconds, script=script(on, accounts))
            if found.refused:
                sys.exit(f"bench: {found.refused} requests were refused")
            return found.requests_per_second

        for accounts in (on.accounts, limited, [fresh], [busy]):
            rate(accounts)  # warm: connections, plans, caches
        return [
            pairs(
                "submit with every limit set / with none", lambda: rate(on.accounts), lambda: rate(limited),
                unit="/s", count=count, goal=0.5,
            ),
            pairs(
                f"submit under limits after {actions:,} actions today / fresh", lambda: rate([fresh]),
                lambda: rate([busy]), unit="/s", count=count, goal=0.95,
            ),
        ]  # fmt: skip


def main() -> None:
    quick = "--quick" in sys.argv
    with stage() as on:
        found = measure(on, 1 if quick else 5, 4 if quick else 8, 50_000 if quick else ACTIONS)
    if quick:
        for ratio in found:
            print(f"{ratio.name}: {ratio.reference:,.0f} -> {ratio.subject:,.0f} {ratio.unit}, {ratio.ratio:.2f}")
        return
    report(
        "Limits",
        found,
        versions=("python", "gunicorn", "psycopg2-binary"),
        command="make bench NAME=limits",
        notes=f"{CONNECTIONS} connections; 256 live accounts without and 256 with limits, then one and one.",
    )


if __name__ == "__main__":
    main()
