"""Trading accounts, broker credentials and the health of the outbox."""
