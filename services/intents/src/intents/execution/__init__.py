"""From an accepted action to an order at a broker, and from what the broker reports back to the intent.

`executor` sends, `reconciler` listens and compares; both write through `recorder` what `model` decides.
"""
