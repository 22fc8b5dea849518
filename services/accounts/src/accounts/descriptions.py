"""What accounts' fields mean, with examples, for the API document.

See `chassis.openapi_descriptions` and `chassis.openapi_examples`.
"""

from accounts.samples import CALLS

FIELDS = {
    "path.credential_id": "Id of the broker credential.",
    "query.cancel_open": "`true`: cancel what is open, and delete the account when the broker has confirmed the "
    "last one.",
    # Accounts
    "Account.id": "Id of the trading account.",
    "broker": "Name of the broker; `GET /v1/brokers` lists those installed. It never changes.",
    "broker_account_id": "The broker's own id of the account, 1 to 64 characters; null if it needs none.",
    "time_zone": "Zone of the IANA database, such as `America/New_York`: its days and trading hours are in it.",
    "flatten_excess": "A market order closes what an order group has filled beyond what it was for.",
    "disabled_reason": "Why it is disabled; null if it is not, or no reason was given.",
    "Account.disabled": "Whether it refuses CREATE and REPLACE.",
    "Disable.reason": "Why, up to 500 characters.",
    # Credentials
    "Credential.id": "Id of the credential.",
    "label": "A name for people to recognize it by, 1 to 120 characters.",
    "Credential.status": "`pending` until the broker has accepted it (`active`) or refused it (`invalid`).",
    "fingerprint": "Keyed hash of the secret: within an organization the same secret has the same one, and it tells "
    "nothing of it.",
    "Credential.version": "Counts its secrets from 1.",
    "NewCredential.secret": "What the broker gave you, as `credential` of `GET /v1/brokers` describes. It is never "
    "answered.",
    "NewSecret.secret": "The new secret, as `credential` of `GET /v1/brokers` describes. It is never answered.",
    # Brokers
    "Broker.name": "What `broker` of an account says.",
    "Broker.title": "The name for people.",
    "environments": "Where accounts may be made.",
    "needs_credential": "Whether an account trades only with a credential.",
    "Broker.credential": "The parts of a secret; empty if there is none.",
    "capabilities": "What can be requested there.",
    "BrokerSecretPart.name": "The field in `secret`.",
    "BrokerSecretPart.title": "Its name for people.",
    "BrokerSecretPart.required": "Whether it must be there.",
    "BrokerSecretPart.longest": "Most characters.",
    "BrokerSecretPart.pattern": "Regular expression that it matches as a whole.",
    "replacement": "How an order is replaced: by the broker at once, by a cancel and a new order, or not at all.",
    "client_ids": "What the broker does with our order ids: refuses a second one (`unique`), answers the first "
    "order again "
    "for a time (`header`), can be queried by them (`echo`), or does not know them (`none`).",
    "streams": "Whether the broker reports by itself what happens to orders.",
    "quotes": "Whether it has prices.",
    "symbol_pattern": "Regular expression that a symbol matches as a whole.",
    "symbol_example": "A symbol as the broker writes it.",
    "calls_per_minute": "Most requests that the broker takes in a minute; null if it says none.",
    # Outbox health
    "entries": "One for each status and event type that has at least one row.",
    "pending": "Rows that wait.",
    "processing": "Rows that are claimed.",
    "failed": "Rows that reached the attempt limit: an operator is needed.",
    "completed": "Rows that are done.",
    "redriven": "How many of the failed rows an operator has queued again.",
    "oldest_claim_at": "The oldest outstanding claim; null if there is none.",
    "oldest_failed_at": "When the oldest failed row was queued; null if there is none.",
    "oldest_pending_at": "When the oldest waiting row was queued; null if there is none.",
    "OutboxHealthEntry.status": "Status of the rows counted.",
    "OutboxHealthEntry.event_type": "Event type of the rows counted.",
    "count": "How many rows there are.",
    "oldest_created_at": "When the oldest of them was queued.",
    "max_attempts": "The most attempts that one of them has had.",
    "oldest_claimed_at": "When the oldest was claimed; of `processing` rows only.",
}
_PART = {"required": True, "longest": 255, "pattern": "[!-~]+"}
EXAMPLES = {
    "broker": "paper",
    "broker_account_id": None,
    "time_zone": "America/New_York",
    "disabled_reason": None,
    "AccountChanges": {"name": "Momentum 2"},
    "Disable": {"reason": "Maintenance"},
    "Enable": {},
    "label": "Main",
    "fingerprint": "5d1f0c3a9b7e4d2186c0f4e2a17b3d95",
    "secret": {"key_id": "PKEXAMPLE", "secret_key": "the-secret-that-the-broker-gave-you"},
    "Broker": {
        "name": "paper",
        "title": "Paper broker",
        "environments": ["paper", "live"],
        "needs_credential": False,
        "is_simulated": True,
        "credential": [
            {**_PART, "name": "key_id", "title": "Key id", "secret": False},
            {**_PART, "name": "secret_key", "title": "Secret key", "secret": True},
        ],
        "capabilities": {
            "kinds": {
                "Market": ["DAY", "GTC", "IOC", "FOK"],
                "Limit": ["DAY", "GTC", "IOC", "FOK"],
                "Stop": ["DAY", "GTC"],
                "StopLimit": ["DAY", "GTC"],
                "TrailingStop": ["DAY", "GTC"],
            },
            "replacement": "native",
            "client_ids": "unique",
            "streams": True,
            "quotes": True,
            "executions": True,
            "fractions": True,
            "notional_orders": ["DAY"],
            "extended_hours": {"Limit": ["DAY"]},
            "routing": True,
            "shared_exits": False,
            "symbol_pattern": ".+",
            "symbol_example": "AAPL",
            "calls_per_minute": None,
        },
    },
    "OutboxHealthEntry.oldest_claimed_at": None,
    "pending": 1,
    "processing": 0,
    "failed": 0,
    "completed": 0,
    "redriven": 0,
    "oldest_claim_at": None,
    "oldest_failed_at": None,
}
EXTENSIONS = {"descriptions": FIELDS, "examples": EXAMPLES, "samples": CALLS}
