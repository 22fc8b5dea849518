"""From an accepted action to an order at a broker, and from what the broker says back to the intent.

`executor` sends, `reconciler` listens and looks; both write through `recorder`. What they write is decided in `model`.
"""
