"""What intents publishes in its outbox."""

INTENT_SUBMITTED = "intent.submitted"
CREDENTIAL_VALID = "credential.valid"
CREDENTIAL_INVALID = "credential.invalid"
"""A broker accepted or refused the credential; accounts, which owns it, marks it."""
DAILY_LOSS_BREACHED = "daily_loss.breached"
"""An account lost more since its day began than `max_daily_loss`; controls, which owns its state, sets REDUCING."""
EVENT_TYPES = (INTENT_SUBMITTED, CREDENTIAL_VALID, CREDENTIAL_INVALID, DAILY_LOSS_BREACHED)
