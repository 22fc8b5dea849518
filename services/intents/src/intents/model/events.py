"""What intents publishes in its outbox."""

INTENT_SUBMITTED = "intent.submitted"
CREDENTIAL_INVALID = "credential.invalid"
"""A broker refused the credential; accounts, which owns it, marks it."""
EVENT_TYPES = (INTENT_SUBMITTED, CREDENTIAL_INVALID)
