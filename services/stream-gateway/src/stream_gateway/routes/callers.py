"""What a caller shows of itself, from the headers of either transport."""

from collections.abc import Iterable

from chassis.authentication import PresentedCredentials
from chassis.fields import Identifier

Headers = Iterable[tuple[str, str | bytes]]


def presented(headers: Headers, address: str | None, trusted_proxies: int) -> PresentedCredentials:
    """Every credential there is: two are refused where one is expected, and so is one that is not text."""
    texts = [(name.lower(), value) for name, value in headers if isinstance(value, str)]
    credentials = [("key", value) for name, value in texts if name == "x-api-key"]
    credentials += [("bearer", value) for name, value in texts if name == "authorization"]
    organizations = [value for name, value in texts if name == "x-organization-id"]
    organization = organizations[0] if len(organizations) == 1 else ",".join(organizations) or None
    forwarded = [part.strip() for name, value in texts if name == "x-forwarded-for" for part in value.split(",")]
    if trusted_proxies and len(forwarded) >= trusted_proxies:
        address = forwarded[-trusted_proxies]
    return PresentedCredentials(tuple(credentials), organization, address)


def is_account_id(text: str) -> bool:
    return bool(Identifier.PATTERN.fullmatch(text))
