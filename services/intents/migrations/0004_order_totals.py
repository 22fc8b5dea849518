"""What limits count, kept by whoever changes it: open orders, orders accepted, the equity at the day's start.

`order_total` has one row for each symbol of an account and one, with an empty symbol, for the account. An action knows
how many orders had been accepted by then, so that the orders of any period are a difference of two numbers: what is
read does not grow with the account's history.
"""

from alembic import op

from chassis import tenancy
from chassis.migrations import publish, publish_function, role

revision = "0004"
down_revision = "0003"

WEB, WORKER = role("intents_web"), role("intents")

TABLES = """
CREATE TABLE intents.order_total (
    account_id         uuid NOT NULL,
    symbol             text NOT NULL,
    organization_id    uuid NOT NULL,
    orders             bigint NOT NULL,
    open_orders        bigint NOT NULL,
    open_buy_quantity  numeric NOT NULL,
    open_sell_quantity numeric NOT NULL,
    CONSTRAINT order_total_pkey PRIMARY KEY (account_id, symbol)
);
CREATE TABLE intents.day_equity (
    account_id      uuid CONSTRAINT day_equity_pkey PRIMARY KEY,
    organization_id uuid NOT NULL,
    day             date NOT NULL,
    equity          numeric NOT NULL,
    balance_at      timestamptz NOT NULL,
    breached        boolean NOT NULL DEFAULT false
);
ALTER TABLE intents.intent ADD replace_quantity numeric;
ALTER TABLE intents.action ADD account_orders bigint NOT NULL DEFAULT 0, ADD symbol_orders bigint NOT NULL DEFAULT 0;
CREATE INDEX action_symbol_idx ON intents.action (account_id, symbol, created_at);
"""

TERMINAL = "'FILLED', 'CANCELED', 'REJECTED', 'DENIED', 'EXPIRED', 'FAILED'"
OPEN_QUANTITY = """greatest(0, greatest(quantity, CASE WHEN status IN ('PENDING_REPLACE', 'PENDING_CANCEL')
    THEN replace_quantity END) - filled_quantity)"""

# The log is append-only for everybody; what this revision adds to its lines is part of no hash.
FILL = f"""
ALTER TABLE intents.action DISABLE TRIGGER action_append_only;
UPDATE intents.action a SET account_orders = counted.account_orders, symbol_orders = counted.symbol_orders
FROM (
    SELECT account_id, sequence,
           count(*) FILTER (WHERE type <> 'CANCEL') OVER (PARTITION BY account_id ORDER BY sequence) AS account_orders,
           count(*) FILTER (WHERE type <> 'CANCEL')
               OVER (PARTITION BY account_id, symbol ORDER BY sequence) AS symbol_orders
    FROM intents.action
) counted WHERE a.account_id = counted.account_id AND a.sequence = counted.sequence;
ALTER TABLE intents.action ENABLE TRIGGER action_append_only;
UPDATE intents.intent i SET replace_quantity = (
    SELECT (terms.value ->> 'quantity')::numeric FROM intents.action a, json_each(a.spec) terms
    WHERE a.account_id = i.account_id AND a.intent_id = i.id AND a.type = 'REPLACE' ORDER BY a.sequence DESC LIMIT 1)
WHERE status IN ('PENDING_REPLACE', 'PENDING_CANCEL');
INSERT INTO intents.order_total (account_id, symbol, organization_id, orders, open_orders, open_buy_quantity,
                                 open_sell_quantity)
SELECT account_id, symbol, organization_id, count(*) FILTER (WHERE type <> 'CANCEL'), 0, 0, 0
FROM (SELECT account_id, symbol, organization_id, type FROM intents.action
      UNION ALL SELECT account_id, '', organization_id, type FROM intents.action) counted
GROUP BY account_id, symbol, organization_id;
UPDATE intents.order_total t SET open_orders = open.orders, open_buy_quantity = open.buy, open_sell_quantity = open.sell
FROM (
    SELECT account_id, symbol, count(*) AS orders,
           coalesce(sum({OPEN_QUANTITY}) FILTER (WHERE order_side = 'BUY'), 0) AS buy,
           coalesce(sum({OPEN_QUANTITY}) FILTER (WHERE order_side = 'SELL'), 0) AS sell
    FROM intents.intent WHERE status NOT IN ({TERMINAL}) GROUP BY account_id, symbol
    UNION ALL
    SELECT account_id, '', count(*), 0, 0 FROM intents.intent WHERE status NOT IN ({TERMINAL}) GROUP BY account_id
) open WHERE t.account_id = open.account_id AND t.symbol = open.symbol;
"""  # noqa: S608 - a constant

# A price of when the broker last traded it for the account, or last reported the position it holds. The one place that
# says what a reference price is.
VIEWS = f"""
CREATE VIEW intents_api.reference_price AS
    SELECT account_id, symbol, last_price AS price,
           CASE WHEN quantity <> 0 AND reconciled_at > updated_at THEN 'position' ELSE 'fill' END AS source,
           CASE WHEN quantity <> 0 THEN greatest(updated_at, reconciled_at) ELSE updated_at END AS priced_at
    FROM intents.position WHERE last_price IS NOT NULL;
CREATE VIEW intents_api.order_total AS
    SELECT account_id, symbol, orders, open_orders, open_buy_quantity, open_sell_quantity FROM intents.order_total;
CREATE VIEW intents_api.order_number AS
    SELECT account_id, symbol, created_at, account_orders, symbol_orders FROM intents.action;
CREATE VIEW intents_api.open_intent AS
    SELECT account_id, id, symbol, order_side, filled_quantity, {OPEN_QUANTITY} AS open_quantity
    FROM intents.intent WHERE status NOT IN ({TERMINAL});
CREATE VIEW intents_api.position AS SELECT account_id, symbol, quantity FROM intents.position;
CREATE VIEW intents_api.equity AS
    SELECT b.account_id, b.equity, d.day, coalesce(d.equity, b.equity) AS day_start_equity
    FROM intents.balance b LEFT JOIN intents.day_equity d USING (account_id);
"""  # noqa: S608 - a constant
VIEW_NAMES = ("equity", "position", "open_intent", "order_number", "order_total", "reference_price")

# What limits and the state REDUCING need to know, at the moment `at` or now: the same for a submit, a dry run and a
# preview. `of_intent` is left out of what is open. In PL/pgSQL, because its plans are kept by the connection.
ORDER_FACTS = """
CREATE FUNCTION intents_api.order_facts(of_account uuid, of_symbol text, of_side text, of_intent uuid, at timestamptz,
                                        price_max_age interval, with_exposure boolean)
RETURNS TABLE (
    now timestamptz, account_orders_last_minute bigint, account_orders_last_day bigint,
    symbol_orders_last_minute bigint, symbol_orders_last_day bigint, account_open_orders bigint,
    symbol_open_orders bigint, position_quantity numeric, open_quantity numeric, opposite_open_quantity numeric,
    reference_price numeric, reference_price_source text, reference_price_at timestamptz, other_exposure numeric,
    equity numeric, day_start_equity numeric, equity_day date, filled_quantity numeric
)
LANGUAGE plpgsql STABLE ROWS 1 AS $$
DECLARE
    moment timestamptz := coalesce(at, clock_timestamp());
    is_buy boolean := of_side = 'BUY';
    account_total intents_api.order_total;
    symbol_total intents_api.order_total;
    own intents_api.open_intent;
BEGIN
    SELECT * INTO account_total FROM intents_api.order_total t WHERE t.account_id = of_account AND t.symbol = '';
    SELECT * INTO symbol_total FROM intents_api.order_total t WHERE t.account_id = of_account AND t.symbol = of_symbol;
    SELECT * INTO own FROM intents_api.open_intent i
    WHERE i.account_id = of_account AND i.id = of_intent AND i.symbol = of_symbol AND i.order_side = of_side;
    RETURN QUERY SELECT
        moment,
        coalesce(account_total.orders, 0) - coalesce(account_minute.orders, 0),
        coalesce(account_total.orders, 0) - coalesce(account_day.orders, 0),
        coalesce(symbol_total.orders, 0) - coalesce(symbol_minute.orders, 0),
        coalesce(symbol_total.orders, 0) - coalesce(symbol_day.orders, 0),
        coalesce(account_total.open_orders, 0) - CASE WHEN own.id IS NULL THEN 0 ELSE 1 END,
        coalesce(symbol_total.open_orders, 0) - CASE WHEN own.id IS NULL THEN 0 ELSE 1 END,
        coalesce(p.quantity, 0),
        coalesce(CASE WHEN is_buy THEN symbol_total.open_buy_quantity ELSE symbol_total.open_sell_quantity END, 0)
            - coalesce(own.open_quantity, 0),
        coalesce(CASE WHEN is_buy THEN symbol_total.open_sell_quantity ELSE symbol_total.open_buy_quantity END, 0),
        price.price, price.source, price.priced_at,
        CASE WHEN with_exposure THEN intents_api.other_exposure(of_account, of_symbol, moment - price_max_age) END,
        e.equity, e.day_start_equity, e.day, own.filled_quantity
    FROM accounts_api.account a
    LEFT JOIN intents_api.position p ON p.account_id = a.id AND p.symbol = of_symbol
    LEFT JOIN intents_api.reference_price price ON price.account_id = a.id AND price.symbol = of_symbol
    LEFT JOIN intents_api.equity e ON e.account_id = a.id
    LEFT JOIN LATERAL (
        SELECT n.account_orders AS orders FROM intents_api.order_number n
        WHERE n.account_id = of_account AND n.created_at <= moment - interval '60 seconds'
        ORDER BY n.created_at DESC LIMIT 1) account_minute ON true
    LEFT JOIN LATERAL (
        SELECT n.account_orders AS orders FROM intents_api.order_number n
        WHERE n.account_id = of_account AND n.created_at <= moment - interval '24 hours'
        ORDER BY n.created_at DESC LIMIT 1) account_day ON true
    LEFT JOIN LATERAL (
        SELECT n.symbol_orders AS orders FROM intents_api.order_number n
        WHERE n.account_id = of_account AND n.symbol = of_symbol AND n.created_at <= moment - interval '60 seconds'
        ORDER BY n.created_at DESC LIMIT 1) symbol_minute ON true
    LEFT JOIN LATERAL (
        SELECT n.symbol_orders AS orders FROM intents_api.order_number n
        WHERE n.account_id = of_account AND n.symbol = of_symbol AND n.created_at <= moment - interval '24 hours'
        ORDER BY n.created_at DESC LIMIT 1) symbol_day ON true
    WHERE a.id = of_account;
END
$$
"""
# The greatest that each other symbol may become, long or short, with its open orders; NULL if one has no usable price.
OTHER_EXPOSURE = """
CREATE FUNCTION intents_api.other_exposure(of_account uuid, without_symbol text, not_before timestamptz)
RETURNS numeric LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT CASE WHEN coalesce(bool_and(coalesce(price.priced_at >= not_before, false)), true)
               THEN coalesce(sum(symbols.size * price.price), 0) END
        FROM (
            SELECT symbol, greatest(coalesce(p.quantity, 0) + coalesce(t.open_buy_quantity, 0),
                                    coalesce(t.open_sell_quantity, 0) - coalesce(p.quantity, 0)) AS size
            FROM (SELECT * FROM intents_api.position WHERE account_id = of_account) p
            FULL JOIN (SELECT * FROM intents_api.order_total WHERE account_id = of_account) t USING (symbol)
        ) symbols
        LEFT JOIN intents_api.reference_price price ON price.account_id = of_account AND price.symbol = symbols.symbol
        WHERE symbols.size > 0 AND symbols.symbol NOT IN ('', without_symbol)
    );
END
$$
"""
FEED_COLUMNS = "event_id, event_type, payload, position, settled_at, traceparent"
READERS = ("intents", "intents_web", "controls_web")
FUNCTIONS = (
    "intents_api.order_facts(uuid, text, text, uuid, timestamptz, interval, boolean)",
    "intents_api.other_exposure(uuid, text, timestamptz)",
)
TOTALS = "orders, open_orders, open_buy_quantity, open_sell_quantity"
GRANTS = f"""
REVOKE DELETE ON intents.order_total, intents.day_equity FROM {WORKER};
GRANT SELECT, INSERT ON intents.order_total TO {WEB};
GRANT UPDATE ({TOTALS}) ON intents.order_total TO {WEB};
GRANT UPDATE (replace_quantity) ON intents.intent TO {WEB};
"""


def upgrade() -> None:
    op.execute(TABLES)
    op.execute(FILL)
    for table in ("order_total", "day_equity"):
        op.execute(tenancy.protect(f"intents.{table}"))
    op.execute(GRANTS)
    op.execute(VIEWS)
    for view in VIEW_NAMES:
        op.execute(publish(f"intents_api.{view}", *READERS))
    op.execute(OTHER_EXPOSURE)
    op.execute(ORDER_FACTS)
    for function in FUNCTIONS:
        op.execute(publish_function(function, *READERS))
    op.execute(publish("intents_api.feed", "controls"))  # which learns there that an account lost too much


def downgrade() -> None:
    op.execute(f"REVOKE ALL ON intents_api.feed FROM {role('controls')}")
    op.execute(f"REVOKE ALL ({FEED_COLUMNS}) ON intents.outbox FROM {role('controls')}")
    for function in FUNCTIONS:
        op.execute(f"DROP FUNCTION {function}")
    for view in VIEW_NAMES:
        op.execute(f"DROP VIEW intents_api.{view}")
    op.execute("DROP INDEX intents.action_symbol_idx")
    op.execute("ALTER TABLE intents.action DROP account_orders, DROP symbol_orders")
    op.execute("ALTER TABLE intents.intent DROP replace_quantity")
    for table in ("order_total", "day_equity"):
        op.execute(f"DROP TABLE intents.{table}")
