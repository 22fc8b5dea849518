"""Fixtures of every suite: real Postgres, real Valkey, a migrated database per module."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["tip_local.platform_plugin"]

# How long something takes says more about the machine than about the product.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
