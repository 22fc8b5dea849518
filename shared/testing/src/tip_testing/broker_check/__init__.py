"""The broker conformance kit as a command: `tip broker check`, or `python -m tip_testing.broker_check`.

A check connects the adapter as the executor does, by the description of its plug-in: to the broker's simulator, or to
its sandbox. It never connects to a live environment.
"""
