"""Who did something, by name where the caller may know it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tip.plain import short

if TYPE_CHECKING:
    from tip_client import Client
    from tip_client.models.trading import Actor

_KINDS = {"api_key": "key", "service_account": "service account"}


def key_names(client: "Client") -> dict[str, str]:
    """The names of API keys, for admins; nobody else may list them."""
    from tip_client import Forbidden, Unauthenticated

    try:
        return {key.id: key.name for key in client.keys.list()}
    except (Forbidden, Unauthenticated):
        return {}


def actor_name(actor: "Actor", names: Mapping[str, str]) -> str:
    """`key bot-key`, `key 1a2b3c4d`, `user 93327def`, `system`."""
    kind = _KINDS.get(actor.type, actor.type)
    return kind if actor.type == "system" else f"{kind} {names.get(actor.id) or short(actor.id)}"
