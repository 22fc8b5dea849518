"""Simulators of the platform's own brokers, as `tip broker check` starts them: see `tip_brokers.simulator`."""
