"""`python -m tip_testing.fix_acceptor FOLDER PORT`: QuickFIX with its own store in files, and the market behind it."""

import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import quickfix

from tip_testing.fix_acceptor.market import Market

SETTINGS = """
[DEFAULT]
ConnectionType=acceptor
SocketAcceptPort={port}
SocketReuseAddress=Y
StartTime=00:00:00
EndTime=00:00:00
FileStorePath={folder}/store
DataDictionary={prefix}/share/quickfix/FIX44.xml
CheckLatency=N
[SESSION]
BeginString=FIX.4.4
SenderCompID=BROKER
TargetCompID=TIP
"""
HEADER = (97,)
PASSWORD = "open sesame"


class Broker(quickfix.Application):  # type: ignore[misc]
    def __init__(self, journal: Path) -> None:
        super().__init__()
        self._market, self._journal = Market(), journal.open("a+")
        self._journal.seek(0)
        for line in self._journal:  # what was done before it was killed
            self._market.answer(fields(line.rstrip("\n")))

    def onCreate(self, _session: Any) -> None:  # noqa: N802 - these names are QuickFIX's
        pass

    onLogon = onLogout = onCreate  # noqa: N815

    def toAdmin(self, _message: Any, _session: Any) -> None:  # noqa: N802
        pass

    toApp = toAdmin  # noqa: N815

    def fromAdmin(self, message: Any, _session: Any) -> None:  # noqa: N802
        given = fields(message.toString())
        if given[35] == "A" and given.get(554) != PASSWORD:
            raise quickfix.RejectLogon("wrong password")

    def fromApp(self, message: Any, session: Any) -> None:  # noqa: N802
        """Done and written down first, reported afterwards: it may be killed in between."""
        text = message.toString()
        self._journal.write(text + "\n")
        self._journal.flush()
        for report in self._market.answer(fields(text)):
            quickfix.Session.sendToTarget(_made(report), session)


def fields(text: str) -> dict[int, str]:
    pairs = (pair.partition("=") for pair in text.split("\x01") if pair)
    return {int(tag): value for tag, _, value in pairs}


def _made(report: dict[int, str]) -> Any:
    made = quickfix.Message()
    made.getHeader().setField(quickfix.BeginString("FIX.4.4"))
    made.getHeader().setField(quickfix.MsgType(report[35]))
    moment = {60: datetime.now(UTC).strftime("%Y%m%d-%H:%M:%S.%f")[:-3]}
    for tag, value in {**report, **moment}.items():
        if tag in HEADER:
            made.getHeader().setField(quickfix.StringField(tag, value))
        elif tag != 35:
            made.setField(quickfix.StringField(tag, value))
    return made


def main(folder: str, port: str) -> None:
    Path(folder, "store").mkdir(parents=True, exist_ok=True)
    file = Path(folder, "settings.cfg")
    file.write_text(SETTINGS.format(port=port, folder=folder, prefix=sys.prefix))
    settings = quickfix.SessionSettings(str(file))
    broker = Broker(Path(folder, "journal"))
    acceptor = quickfix.SocketAcceptor(broker, quickfix.FileStoreFactory(settings), settings)
    acceptor.start()
    sys.stdout.write("started\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
