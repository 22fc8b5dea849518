"""Alpaca's trading API, and whatever else speaks it: the platform's paper broker does.

The official SDK sets no time-outs, retries by sleeping and brings pandas; so this is `requests` with every time-out set
and no retry at all.
"""

from intents.brokers.alpaca.account import Alpaca, Connection
from intents.brokers.alpaca.http_client import CONNECT_SECONDS, READ_SECONDS

__all__ = ["CONNECT_SECONDS", "READ_SECONDS", "Alpaca", "Connection"]
