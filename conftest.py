"""Fixtures of every suite: real Postgres, real Valkey, a migrated database per module."""

pytest_plugins = ["tip_local.platform_plugin"]
