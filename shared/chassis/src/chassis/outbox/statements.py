"""The only SQL on the outbox tables; `{schema}` is the service's own. Every moment is the database's."""

# An id is given when a row is written, but others see the row only when it is committed. So whoever appends under an
# ordering key waits, before the id, for those who did so and have not committed: in one key, ids are in commit order.
LOCK_ORDERING_KEY = "pg_advisory_xact_lock(hashtextextended('{schema}.outbox_key ' || {key}, 0))"
APPEND = """
WITH locked AS MATERIALIZED (SELECT {lock_ordering_key})
INSERT INTO {schema}.outbox (event_id, event_type, ordering_key, payload, traceparent)
SELECT :event_id, :event_type, :ordering_key,
       CAST(:payload AS jsonb) || jsonb_build_object(
           'occurred_at', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')),
       :traceparent
FROM locked
"""

# A row whose worker died during the last attempt allowed is nobody's: the claim below skips it, so it is failed here.
FAIL_ABANDONED = """
UPDATE {schema}.outbox SET status = 'failed', settled_at = now(), claim_token = NULL, last_error = 'worker_lost'
WHERE id IN (
    SELECT id FROM {schema}.outbox
    WHERE status = 'processing' AND claimed_at < now() - make_interval(secs => :claim_seconds)
      AND attempts >= :attempt_limit
    FOR UPDATE SKIP LOCKED
)
RETURNING id, event_type, payload
"""

# The open rows that share a row's ordering key, from the first on. BETWEEN, because with an equals sign Postgres may
# think itself faster by the primary key, through everything that was ever completed.
ORDERING_GROUP = """FROM {schema}.outbox e
        WHERE e.ordering_key BETWEEN o.ordering_key AND o.ordering_key AND e.status IN ('pending', 'processing')
        ORDER BY e.ordering_key, e.id"""
# Oldest first. Rows that share an ordering key are taken together, in their order: one is taken only if every open row
# before it is taken by the same claim. So `waiting` passes over a group whose first row is being processed or is not
# due before, and `chosen` leaves out what is not at the same place among the found as in its group.
# A row that lost its worker more than once is taken alone: if it is what kills them, it fails alone. What was counted
# as backlog is counted off. Whoever changes several counters locks them in the order of their keys first, here and
# below: else two may deadlock.
CLAIM = """
WITH overdue AS MATERIALIZED (
    SELECT o.id, o.ordering_key, o.attempts FROM {schema}.outbox o
    WHERE o.status = 'processing' AND o.claimed_at < now() - make_interval(secs => :claim_seconds)
      AND o.attempts < :attempt_limit
    ORDER BY o.claimed_at, o.id LIMIT :batch FOR UPDATE SKIP LOCKED
), suspect AS (
    SELECT o.id FROM overdue o
    WHERE o.attempts > 1 AND (o.ordering_key IS NULL OR o.id = (SELECT e.id {group} LIMIT 1))
    ORDER BY o.id LIMIT 1
), waiting AS MATERIALIZED (
    SELECT o.id, o.ordering_key FROM {schema}.outbox o
    WHERE o.status = 'pending' AND o.available_at <= now() AND NOT EXISTS (SELECT 1 FROM suspect)
      AND (o.ordering_key IS NULL OR (
        SELECT e.status = 'pending' AND e.available_at <= o.available_at {group} LIMIT 1))
    ORDER BY o.available_at, o.id LIMIT :batch FOR UPDATE SKIP LOCKED
), found AS (
    SELECT *, row_number() OVER (PARTITION BY ordering_key ORDER BY id) AS place FROM (
        SELECT id, ordering_key, false AS was_pending FROM overdue
        UNION ALL SELECT id, ordering_key, true FROM waiting LIMIT :batch) batch
), chosen AS (
    SELECT id, false AS was_pending FROM suspect
    UNION ALL SELECT o.id, o.was_pending FROM found o
    WHERE NOT EXISTS (SELECT 1 FROM suspect)
      AND (o.ordering_key IS NULL OR o.id = (SELECT e.id {group} OFFSET o.place - 1 LIMIT 1))
), claimed AS (
    UPDATE {schema}.outbox o
    SET status = 'processing', claimed_at = now(), attempts = attempts + 1, claim_token = :claim_token
    FROM chosen WHERE o.id = chosen.id
    RETURNING o.id, o.event_id, o.event_type, o.ordering_key, o.payload, o.traceparent, o.attempts, o.created_at,
              chosen.was_pending, o.pending_xid
), gone AS (
    SELECT event_type, count(*) AS count FROM claimed, {schema}.outbox_head h
    WHERE was_pending AND pending_xid < h.counted_below GROUP BY event_type
), locked AS (
    SELECT b.event_type FROM {schema}.outbox_backlog b WHERE b.event_type IN (SELECT event_type FROM gone)
    ORDER BY b.event_type FOR UPDATE
), counted_off AS (
    UPDATE {schema}.outbox_backlog b SET count = b.count - gone.count
    FROM locked JOIN gone USING (event_type) WHERE b.event_type = locked.event_type
)
SELECT id, event_id, event_type, ordering_key, payload, traceparent, attempts, created_at FROM claimed
"""

# Settling filters by the token alone: only a row that is being processed has one, and a status here would make Postgres
# scan an index of open rows instead of going to the ids.
# Of one ordering key only what comes before its first open row outside this statement is completed: a worker whose
# claim was taken back in part would else put the rest into the feed before the part. The rest stays as it is. What the
# snapshot shows of other rows may be old by the time the own rows are locked, and that does no harm: a row with a lower
# id is never opened again, and `held` has only what is still ours. Per key it is one descent of an index of open rows.
# The head row gives positions in commit order without a gap; it is touched once per batch, by workers only.
COMPLETE = """
WITH held AS MATERIALIZED (
    SELECT id, event_type, attempts, ordering_key FROM {schema}.outbox
    WHERE id = ANY(:ids) AND claim_token = :claim_token ORDER BY id FOR UPDATE
), first_of_key AS (
    SELECT o.*, CASE WHEN row_number() OVER (PARTITION BY ordering_key ORDER BY id) = 1 THEN (
        SELECT e.id FROM {schema}.outbox e
        WHERE e.ordering_key BETWEEN o.ordering_key AND o.ordering_key AND e.status IN ('pending', 'processing')
          AND e.id NOT IN (SELECT id FROM held)
        ORDER BY e.ordering_key, e.id LIMIT 1) END AS barred_from
    FROM held o
), mine AS (
    SELECT id, event_type, attempts, row_number() OVER (ORDER BY id) AS place FROM (
        SELECT *, min(barred_from) OVER (PARTITION BY ordering_key) AS key_barred_from FROM first_of_key) o
    WHERE key_barred_from IS NULL OR id < key_barred_from
), head AS (
    UPDATE {schema}.outbox_head SET last_position = last_position + (SELECT count(*) FROM mine) RETURNING last_position
), counted AS (
    INSERT INTO {schema}.outbox_completed (event_type, attempts, count)
    SELECT event_type, attempts, count(*) FROM mine GROUP BY event_type, attempts ORDER BY event_type, attempts
    ON CONFLICT (event_type, attempts) DO UPDATE SET count = outbox_completed.count + excluded.count
)
UPDATE {schema}.outbox o
SET status = 'completed', settled_at = now(), claim_token = NULL, last_error = NULL,
    position = head.last_position - (SELECT count(*) FROM mine) + mine.place
FROM mine, head WHERE o.id = mine.id
RETURNING o.id
"""

XID = "CAST(CAST(pg_current_xact_id() AS text) AS bigint)"
RETRY = """
UPDATE {schema}.outbox
SET status = CASE WHEN attempts >= :attempt_limit THEN 'failed' ELSE 'pending' END,
    settled_at = CASE WHEN attempts >= :attempt_limit THEN now() END,
    available_at = now() + make_interval(secs => least(:max_backoff, power(2, least(attempts, 20)))),
    claimed_at = NULL, claim_token = NULL, last_error = :error, pending_xid = {xid}
WHERE id = :id AND claim_token = :claim_token
RETURNING status
"""

RELEASE = """
UPDATE {schema}.outbox
SET status = 'pending', attempts = attempts - 1, claimed_at = NULL, claim_token = NULL,
    available_at = now() + make_interval(secs => :delay), last_error = :error, pending_xid = {xid}
WHERE id = ANY(:ids) AND claim_token = :claim_token
RETURNING id
"""

# By when they were completed and not by when they were queued: consumers have the whole time to read them. The copy of
# a failed row stays as long as that row does, to show that it was driven again.
PRUNE = """
WITH old AS (
    DELETE FROM {schema}.outbox WHERE id IN (
        SELECT id FROM (
            SELECT id, settled_at FROM {schema}.outbox WHERE position IS NOT NULL AND redriven_from IS NULL
            ORDER BY position LIMIT :batch FOR UPDATE SKIP LOCKED) first
        WHERE settled_at < now() - make_interval(days => :days))
    RETURNING event_type, attempts
), gone AS (
    SELECT event_type, attempts, count(*) AS count FROM old GROUP BY event_type, attempts
), locked AS (
    SELECT c.event_type, c.attempts FROM {schema}.outbox_completed c
    WHERE (c.event_type, c.attempts) IN (SELECT event_type, attempts FROM gone)
    ORDER BY c.event_type, c.attempts FOR UPDATE
), counted AS (
    UPDATE {schema}.outbox_completed c SET count = c.count - gone.count
    FROM locked JOIN gone USING (event_type, attempts)
    WHERE c.event_type = locked.event_type AND c.attempts = locked.attempts
)
SELECT coalesce(sum(count), 0)::bigint FROM gone
"""

# One at a time, so that a row cannot be copied twice at once.
REDRIVING = "SELECT pg_advisory_xact_lock(hashtextextended('{schema}.outbox_redrive', 0))"
REDRIVE = """
WITH given_up AS MATERIALIZED (
    SELECT id, event_type, ordering_key, payload, traceparent, {lock_ordering_key}
    FROM {schema}.outbox WHERE id = :id AND status = 'failed'
)
INSERT INTO {schema}.outbox (event_id, event_type, ordering_key, payload, traceparent, redriven_from)
SELECT :event_id, event_type, ordering_key, payload || jsonb_build_object('event_id', CAST(:event_id AS text)),
       traceparent, id
FROM given_up
RETURNING id
"""
COPY_OF = "SELECT max(id) FROM {schema}.outbox WHERE redriven_from = :id"

# Materialized, because few rows fail: in the order of ids Postgres might read everything that was ever completed.
FAILED = """
WITH failed AS MATERIALIZED (
    SELECT id, event_id, event_type, payload, attempts, last_error, created_at, settled_at,
           (SELECT max(copy.id) FROM {schema}.outbox copy WHERE copy.redriven_from = f.id) AS redriven_as
    FROM {schema}.outbox f WHERE status = 'failed' AND id > :after AND id <= :through
)
SELECT * FROM failed WHERE CAST(:redriven AS boolean) IS NULL OR (redriven_as IS NOT NULL) = :redriven
ORDER BY id LIMIT :batch
"""

# Nothing is counted by the transaction that queues an event. Completed rows are counted by the worker that completes
# them. Pending rows are counted for each report, but a backlog only once: `ROLL_UP`, by the relay or for a report,
# remembers the count of all rows made pending by transactions below a horizon under which none is still running, and
# the claim counts them off again.
HEALTH = """
WITH fresh AS (
    SELECT event_type, count(*) AS count FROM {schema}.outbox
    WHERE status = 'pending' AND pending_xid >= (SELECT counted_below FROM {schema}.outbox_head) GROUP BY event_type
), pending AS (
    SELECT event_type, sum(count)::bigint AS count
    FROM (SELECT event_type, count FROM fresh UNION ALL SELECT event_type, count FROM {schema}.outbox_backlog) kinds
    GROUP BY event_type HAVING sum(count) > 0
), completed AS (
    SELECT event_type, sum(count)::bigint AS count, max(attempts) AS max_attempts
    FROM {schema}.outbox_completed WHERE count > 0 GROUP BY event_type
)
SELECT 'pending' AS status, p.event_type, p.count, oldest.created_at AS oldest_created_at,
       coalesce((SELECT max(o.attempts) FROM {schema}.outbox o
                 WHERE o.status = 'pending' AND o.attempts > 0 AND o.event_type = p.event_type), 0) AS max_attempts,
       NULL::timestamptz AS oldest_claimed_at, 0 AS redriven
FROM pending p CROSS JOIN LATERAL (
    SELECT created_at FROM {schema}.outbox o
    WHERE o.status = 'pending' AND o.event_type = p.event_type ORDER BY created_at LIMIT 1) oldest
UNION ALL
SELECT status, event_type, count(*), min(created_at), max(attempts),
       min(claimed_at) FILTER (WHERE status = 'processing'),
       count(*) FILTER (WHERE status = 'failed' AND EXISTS (
           SELECT FROM {schema}.outbox copy WHERE copy.redriven_from = failed.id))
FROM {schema}.outbox failed WHERE status IN ('processing', 'failed') GROUP BY status, event_type
UNION ALL
SELECT 'completed', c.event_type, c.count, oldest.created_at, c.max_attempts, NULL, 0
FROM completed c CROSS JOIN LATERAL (
    SELECT created_at FROM {schema}.outbox o
    WHERE o.status = 'completed' AND o.event_type = c.event_type ORDER BY created_at LIMIT 1) oldest
ORDER BY 1, 2
"""

HAS_OPEN = """
SELECT EXISTS (SELECT FROM {schema}.outbox WHERE status = 'pending')
    OR EXISTS (SELECT FROM {schema}.outbox WHERE status = 'processing')
"""

# In order, so that it is read from the index: a planner who hopes to find enough soon would read the whole table.
UNCOUNTED = """
SELECT count(*) FROM (
    SELECT 1 FROM {schema}.outbox
    WHERE status = 'pending' AND pending_xid >= (SELECT counted_below FROM {schema}.outbox_head)
    ORDER BY pending_xid LIMIT :enough) few
"""

# Whoever completes rows holds the head for a moment only; if it is longer, a report does without the counting.
SHORT_LOCK_TIMEOUT = "SET LOCAL lock_timeout = '100ms'"
# Claims hold this lock shared, so that none is half done while the backlog is counted.
CLAIMING = "SELECT pg_advisory_xact_lock_shared(hashtextextended('{schema}.outbox_backlog', 0))"
COUNTING = "SELECT pg_try_advisory_xact_lock(hashtextextended('{schema}.outbox_backlog', 0))"
# Written by another cluster: dumped and restored, the horizon may be ahead of all transactions here.
FOREIGN_HORIZON = """
SELECT counted_below > pg_snapshot_xmax(pg_current_snapshot())::text::bigint FROM {schema}.outbox_head
"""
FORGET_BACKLOG = """
WITH forgotten AS (DELETE FROM {schema}.outbox_backlog) UPDATE {schema}.outbox_head SET counted_below = 0
"""
# The head is locked only after the counting: those who complete need it.
ROLL_UP = """
WITH horizon AS (
    SELECT least(pg_snapshot_xmin(pg_current_snapshot())::text::bigint, (
        SELECT o.pending_xid + 1 FROM {schema}.outbox o
        WHERE o.status = 'pending' AND o.pending_xid >= (SELECT counted_below FROM {schema}.outbox_head)
        ORDER BY o.pending_xid OFFSET :most LIMIT 1)) AS xid
), counted AS (
    INSERT INTO {schema}.outbox_backlog (event_type, count)
    SELECT o.event_type, count(*) FROM {schema}.outbox o
    WHERE o.status = 'pending' AND o.pending_xid >= (SELECT counted_below FROM {schema}.outbox_head)
      AND o.pending_xid < (SELECT xid FROM horizon)
    GROUP BY o.event_type
    ON CONFLICT (event_type) DO UPDATE SET count = outbox_backlog.count + excluded.count
    RETURNING 1
), done AS (
    SELECT count(*) FROM counted
)
UPDATE {schema}.outbox_head SET counted_below = greatest(counted_below, horizon.xid) FROM horizon, done
"""
