"""Trading intents: commands in, the action log, reads and statistics."""
