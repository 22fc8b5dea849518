"""What intents publishes in its outbox."""

INTENT_SUBMITTED = "intent.submitted"
CREDENTIAL_VALID = "credential.valid"
CREDENTIAL_INVALID = "credential.invalid"
CREDENTIAL_TESTED = "credential.tested"
"""A broker accepted or refused the credential; what came of a test that was requested. Accounts, which owns it, marks
it."""
DAILY_LOSS_BREACHED = "daily_loss.breached"
"""An account lost more since its day began than `max_daily_loss`; controls, which owns its state, sets REDUCING."""
EVENT_TYPES = (INTENT_SUBMITTED, CREDENTIAL_VALID, CREDENTIAL_INVALID, CREDENTIAL_TESTED, DAILY_LOSS_BREACHED)
