"""gunicorn's own lines, in the same form as ours."""

import os
from typing import Any

from gunicorn.glogging import Logger

from chassis import logs


class QuietLogger(Logger):  # type: ignore[misc]
    """Leaves formatting to the root logger; access lines are written by the app, with request ids."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        self.error_log.handlers = []
        self.error_log.propagate = True
        logs.configure("gunicorn", log_format=os.environ.get("LOG_FORMAT", "auto"), level=cfg.loglevel)
