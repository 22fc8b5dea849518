"""The whole platform on one machine: embedded Postgres and Valkey, every process supervised."""
