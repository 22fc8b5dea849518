"""A consumer of several feeds: what one of them holds keeps none of the others waiting."""

import threading
import time

from chassis.worker.consumer import FeedConsumer


def test_a_feed_that_is_filled_faster_than_it_is_consumed_holds_up_no_other() -> None:
    stop, consumed = threading.Event(), threading.Event()

    def busy(turn: threading.Event) -> int:
        count = 0
        while not turn.is_set():  # as a feed that never ends is drained
            time.sleep(0.01)
            count += 1
        return count

    def other(_turn: threading.Event) -> int:
        consumed.set()
        return 0

    consumer = threading.Thread(target=FeedConsumer("tests", "queue", [busy, other]).drain, args=(stop,), daemon=True)
    consumer.start()

    assert consumed.wait(60)
    stop.set()
    consumer.join(60)
    assert not consumer.is_alive()


def test_feeds_are_drained_until_none_has_anything_left() -> None:
    left = [3, 1, 2]

    def drain(place: int, _turn: threading.Event) -> int:
        left[place], done = max(0, left[place] - 1), min(1, left[place])
        return done

    drains = [lambda turn, place=place: drain(place, turn) for place in range(3)]
    FeedConsumer("tests", "queue", drains).drain(threading.Event())

    assert left == [0, 0, 0]
