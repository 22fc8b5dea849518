"""The acceptor's process."""

from collections.abc import Iterator
from pathlib import Path

from tip_testing.fix_acceptor.market import Market
from tip_testing.ports import reserved_port
from tip_testing.processes import Running, start


class Acceptor:
    """Whoever starts it ends it. What it knows is in its folder, so it may be killed at any moment."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, reserved_port()
        folder.mkdir(parents=True, exist_ok=True)
        self.process = self._started()

    def _started(self) -> Running:
        return start(
            "-m", "tip_testing.fix_acceptor", str(self.folder), str(self.port),
            environment={}, log=self.folder / "acceptor.log", ready=lambda process: "started" in process.output(),
        )  # fmt: skip

    def restart(self) -> None:
        """As after a power cut."""
        self.process.end()
        (self.folder / "acceptor.log").unlink()
        self.process = self._started()

    def stop(self) -> None:
        self.process.end()

    def market(self) -> Market:
        """What the broker has done, by its own journal."""
        market = Market()
        for message in self.received():
            market.answer(message)
        return market

    def received(self) -> Iterator[dict[int, str]]:
        """The application messages that it has taken in."""
        journal = self.folder / "journal"
        for line in journal.read_text().splitlines() if journal.exists() else ():
            pairs = (pair.partition("=") for pair in line.split("\x01") if pair)
            yield {int(tag): value for tag, _, value in pairs}
