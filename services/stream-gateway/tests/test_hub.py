"""An account's newest events in memory, against the simplest model there is: the whole log as a list."""

from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from stream_gateway.fairness import WriteScheduler
from stream_gateway.hub import BATCH, Hub
from stream_gateway.schemas import Entry
from trading_proto import trading_pb2

HEADS = st.integers(0, 2_000)
BURSTS = st.lists(st.integers(1, 400), max_size=8)


def hub_after(head: int, bursts: list[int], limit: int) -> Hub:
    hub = Hub(uuid4(), uuid4(), "epoch", head, limit, WriteScheduler())
    for burst in bursts:
        hub.append([Entry(hub.last + number, 1, b"") for number in range(1, burst + 1)])
    return hub


@given(HEADS, BURSTS, st.integers(1, 300), st.data())
def test_a_stream_reads_on_in_memory_or_in_the_log_and_meets_every_event_once(head, bursts, limit, data) -> None:
    hub = hub_after(head, bursts, limit)
    position = data.draw(st.integers(0, hub.last + 5))
    begin, met = position, []
    while position < hub.last:
        entries = hub.after(position)
        if entries is None:
            start, until = hub.page(position)
            assert start <= position < until <= hub.last and until - start <= BATCH
            found = [number for number in range(start + 1, until + 1) if number > position]
        else:
            found = [entry.sequence for entry in entries]
        met += found
        position = found[-1]

    assert met == list(range(begin + 1, hub.last + 1))
    assert hub.after(max(begin, hub.last)) == []


@given(HEADS, BURSTS, st.integers(1, 300))
def test_what_is_kept_is_bounded_and_reaches_the_end(head, bursts, limit) -> None:
    hub = hub_after(head, bursts, limit)
    newest = min(limit, sum(bursts))

    assert hub.kept <= 2 * limit
    assert hub.after(hub.last - newest) is not None
    assert hub.last == head + sum(bursts)


@given(HEADS, BURSTS, st.integers(1, 300))
def test_a_quiet_account_keeps_nothing(head, bursts, limit) -> None:
    hub = hub_after(head, bursts, limit)

    hub.tidy()
    hub.tidy()

    assert hub.kept == 0 and hub.after(hub.last) == []
    assert hub.last == 0 or hub.after(hub.last - 1) is None


def test_streams_that_are_equally_far_behind_share_a_page() -> None:
    hub = Hub(uuid4(), uuid4(), "epoch", 10_000, 64, WriteScheduler())

    assert {hub.page(position) for position in range(512, 512 + BATCH)} == {(512, 512 + BATCH)}
    assert hub.page(9_999) == (9_984, 10_000)


def test_a_hole_in_the_log_is_stepped_over() -> None:
    """The log has none; if it ever had, the streams must go on all the same."""
    hub = hub_after(5, [3], 64)

    hub.append([Entry(20, 1, b""), Entry(21, 1, b"")])

    assert hub.last == 21 and [entry.sequence for entry in hub.after(19) or []] == [20, 21]
    assert hub.after(8) is None


@given(HEADS, st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.3]), st.integers(0, 2), st.integers(0, 2)), min_size=1))
def test_a_heartbeat_says_where_the_stream_and_the_log_are_and_is_shared_for_a_moment_only(head, steps) -> None:
    hub, now, made = hub_after(head, [], 64), 0.0, {}
    for passed, behind, appended in steps:
        now += passed
        hub.append([Entry(hub.last + number, 1, b"") for number in range(1, appended + 1)])
        position = max(0, hub.last - behind)

        entry = hub.heartbeat(position, now)

        message = trading_pb2.TradingEvent.FromString(entry.message)
        assert (message.sequence, message.heartbeat.latest_sequence) == (position, hub.head)
        assert now - made.setdefault(id(entry), (now, entry))[0] <= 0.25


def test_streams_at_the_same_place_share_a_heartbeat() -> None:
    hub = hub_after(5, [], 64)

    assert hub.heartbeat(5, 1.0) is hub.heartbeat(5, 1.2)
    assert hub.heartbeat(5, 1.2) is not hub.heartbeat(4, 1.2)
