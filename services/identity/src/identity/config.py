"""What identity reads from its environment."""

from dataclasses import dataclass
from datetime import timedelta

from chassis.config import BadConfiguration, ServiceConfig, decode_key, setting
from identity.model import Limits


@dataclass(frozen=True)
class WorkerConfig(ServiceConfig):
    """What the scheduler reads: it signs nothing, so it never holds the key. The relay reads even less."""

    public_url: str = setting(
        "PUBLIC_URL", "where callers reach this service, for discovery; TOKEN_ISSUER when empty", default=""
    )
    token_lifetime_seconds: int = setting("TOKEN_LIFETIME_SECONDS", "how long an issued token is valid", default=3600)
    user_token_lifetime_seconds: int = setting(
        "USER_TOKEN_LIFETIME_SECONDS", "the same for people who signed in here; clients refresh it", default=600
    )
    login_per_minute: int = setting(
        "LOGIN_RATE_LIMIT_PER_MINUTE",
        "attempts to sign in a minute from one address, ten times as many as one person",
        default=20,
    )
    token_per_minute: int = setting(
        "TOKEN_RATE_LIMIT_PER_MINUTE", "token requests a minute for one address, and for one client", default=600
    )
    validate_per_minute: int = setting(
        "VALIDATE_RATE_LIMIT_PER_MINUTE",
        "key validations a minute for one address, and for one key prefix",
        default=120,
    )
    most_api_keys: int = setting("API_KEYS_PER_ORGANIZATION", "API keys an organization may have", default=1_000)
    most_members: int = setting("MEMBERS_PER_ORGANIZATION", "members an organization may have", default=1_000)
    most_invitations: int = setting(
        "INVITATIONS_PER_ORGANIZATION", "open invitations an organization may have", default=1_000
    )
    invitation_lifetime_days: int = setting("INVITATION_LIFETIME_DAYS", "how long an invitation is open", default=7)
    invitations_per_minute: int = setting(
        "INVITATION_RATE_LIMIT_PER_MINUTE",
        "codes of invitations a minute that one address, and one user, may present",
        default=120,
    )
    most_service_accounts: int = setting(
        "SERVICE_ACCOUNTS_LIMIT", "service accounts the platform may have", default=1_000
    )
    oidc_scim_url: str = setting(
        "OIDC_SCIM_URL", "SCIM 2.0 address of the provider, whose user ids are its `sub`", default=""
    )
    oidc_delete_url: str = setting(
        "OIDC_DELETE_URL", "instead of SCIM: the address to DELETE, with `{subject}` in it", default=""
    )
    oidc_client_id: str = setting("OIDC_CLIENT_ID", "our client at the provider, to delete users with", default="")
    oidc_client_secret: str = setting("OIDC_CLIENT_SECRET", "its secret", default="", secret=True)
    oidc_delete_token: str = setting(
        "OIDC_DELETE_TOKEN",
        "instead of a client: a bearer token to delete users with, or `scheme token` for another scheme",
        default="",
        secret=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one = {
            "TOKEN_LIFETIME_SECONDS": self.token_lifetime_seconds,
            "USER_TOKEN_LIFETIME_SECONDS": self.user_token_lifetime_seconds,
            "LOGIN_RATE_LIMIT_PER_MINUTE": self.login_per_minute,
            "TOKEN_RATE_LIMIT_PER_MINUTE": self.token_per_minute,
            "VALIDATE_RATE_LIMIT_PER_MINUTE": self.validate_per_minute,
            "API_KEYS_PER_ORGANIZATION": self.most_api_keys,
            "MEMBERS_PER_ORGANIZATION": self.most_members,
            "INVITATIONS_PER_ORGANIZATION": self.most_invitations,
            "INVITATION_LIFETIME_DAYS": self.invitation_lifetime_days,
            "INVITATION_RATE_LIMIT_PER_MINUTE": self.invitations_per_minute,
            "SERVICE_ACCOUNTS_LIMIT": self.most_service_accounts,
        }
        wrong = [variable for variable, value in at_least_one.items() if value < 1]
        if wrong:
            raise BadConfiguration("\n".join(f"{variable}: must be at least 1" for variable in wrong))

    @property
    def limits(self) -> Limits:
        return Limits(
            self.most_api_keys,
            self.most_members,
            self.most_service_accounts,
            self.most_invitations,
            timedelta(days=self.invitation_lifetime_days),
        )

    @property
    def signing_key_encryption_keys(self) -> tuple[bytes, ...]:
        return ()


@dataclass(frozen=True)
class Config(WorkerConfig):
    signing_key_encryption_key: str = setting(
        "SIGNING_KEY_ENCRYPTION_KEY", "32 random bytes in base64; seals the signing keys at rest", secret=True
    )
    earlier_signing_key_encryption_keys: tuple[str, ...] = setting(
        "EARLIER_SIGNING_KEY_ENCRYPTION_KEYS",
        "keys still accepted until `tip signing-keys reseal`",
        default=(),
        secret=True,
    )

    @property
    def signing_key_encryption_keys(self) -> tuple[bytes, ...]:
        """The current one first."""
        current = decode_key(self.signing_key_encryption_key, "SIGNING_KEY_ENCRYPTION_KEY")
        earlier = self.earlier_signing_key_encryption_keys
        return current, *(decode_key(key, "EARLIER_SIGNING_KEY_ENCRYPTION_KEYS") for key in earlier)
