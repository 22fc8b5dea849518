"""A worker that hangs or is not ready when a file says so: python health_worker.py FOLDER."""

import sys
import threading
import time
from pathlib import Path

from chassis import health, process


def turn(stop: threading.Event) -> None:
    while not stop.is_set():
        stop.wait(0.05)


def main(folder: Path) -> None:
    hang, tired = folder / "hang", folder / "tired"

    def loop(stop: threading.Event) -> None:
        threading.Thread(target=turn, args=(stop,), name="other", daemon=True).start()
        while not stop.is_set():
            while hang.exists():
                time.sleep(0.05)
            stop.wait(3600 if tired.exists() else 0.05)

    def ready() -> health.Report:
        return health.Report(not tired.exists(), {"tired": tired.exists()})

    process.run("worker", loop, log_format="json", ready=ready)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
