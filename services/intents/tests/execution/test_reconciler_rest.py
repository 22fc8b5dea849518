"""A reconciler without an account to follow renews its leases rarely, until something is submitted."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from intents.execution import reconciler as module

from .test_streams import quiet, reconciler, watch  # noqa: F401 - fixtures


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(module, "RENEW_SECONDS", 0.3)
    monkeypatch.setattr(module, "REST_SECONDS", 6.0)


def seconds_until_renewal(reconciler, meanwhile=lambda: None):  # noqa: F811 - the fixture's value
    threading.Timer(0.15, meanwhile).start()
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        reconciler._reconcile_until_renewal(pool, threading.Event())
    return time.monotonic() - began


def test_without_an_account_it_rests(reconciler):  # noqa: F811
    assert seconds_until_renewal(reconciler) >= 6.0


def test_whatever_is_submitted_ends_its_rest(reconciler):  # noqa: F811
    assert seconds_until_renewal(reconciler, reconciler.attend) < 4.0


def test_a_requested_read_is_begun_at_once(reconciler):  # noqa: F811
    assert seconds_until_renewal(reconciler, reconciler.wake) < 4.0


def test_with_an_account_it_does_not_rest(reconciler):  # noqa: F811
    watch(reconciler, uuid4(), 1)
    for followed in reconciler._watches.values():
        followed.due_at = float("inf")

    assert seconds_until_renewal(reconciler) < 4.0
