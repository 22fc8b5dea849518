"""The platform as its containers see it: the same secrets and environments as the embedded one, other addresses."""

import os
from pathlib import Path
from urllib.parse import quote

from tip_local.home import Home
from tip_local.settings import Settings
from tip_local.stack import DATABASE, Stack

ADMINISTRATOR = "tip"
FOLDER = Path("/run/tip")
"""One volume per service is mounted below it, with the secrets of that service and of no other."""


class ContainerStack(Stack):
    @property
    def base_url(self) -> str:
        return os.environ["BASE_URL"].removesuffix(":443")

    @property
    def stream_target(self) -> str:
        return os.environ["STREAM_TARGET"]

    @property
    def events_url(self) -> str:
        return self.base_url

    @property
    def paper_broker_url(self) -> str:
        return os.environ["PAPER_BROKER_URL"]


def container_stack(postgres_password: str, redis_password: str) -> ContainerStack:
    settings = Settings.from_env()
    home = Home(settings.home)
    home.create()
    admin_url = f"postgresql://{ADMINISTRATOR}:{quote(postgres_password, safe='')}@postgres:5432/{DATABASE}"
    redis_url = os.environ.get("REDIS_URL") or f"redis://:{quote(redis_password, safe='')}@redis:6379/0"
    return ContainerStack(settings, home, home.secrets(), admin_url, redis_url)
