"""The provider that the configuration names."""

from chassis.config import BadConfiguration
from identity.config import WorkerConfig
from identity.providers import Provider
from identity.providers.local import LocalProvider
from identity.providers.oidc import OidcProvider


def provider(config: WorkerConfig) -> Provider:
    if not config.oidc_issuer:
        return LocalProvider(config.identity_provider)
    if not config.oidc_client_id and not config.oidc_delete_token:
        raise BadConfiguration("OIDC_CLIENT_ID or OIDC_DELETE_TOKEN: one is needed to delete users at the provider")
    if not (config.oidc_delete_token.isascii() and config.oidc_delete_token.isprintable()):
        raise BadConfiguration("OIDC_DELETE_TOKEN: must be printable ASCII")
    return OidcProvider(
        config.identity_provider,
        config.oidc_issuer,
        _delete_url(config),
        config.oidc_client_id,
        config.oidc_client_secret,
        config.oidc_delete_token,
    )


def _delete_url(config: WorkerConfig) -> str:
    if bool(config.oidc_scim_url) == bool(config.oidc_delete_url):
        raise BadConfiguration("OIDC_SCIM_URL or OIDC_DELETE_URL: exactly one says where users are deleted")
    url = config.oidc_delete_url or f"{config.oidc_scim_url.rstrip('/')}/Users/{{subject}}"
    if not url.startswith(("https://", "http://")):
        raise BadConfiguration("OIDC_SCIM_URL or OIDC_DELETE_URL: must be an https or http address")
    if "{subject}" not in url:
        raise BadConfiguration("OIDC_DELETE_URL: must hold {subject}")
    return url
