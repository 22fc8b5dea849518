from pathlib import Path

from tip_testing.servers_plugin import said_of_itself

LINES = """10:00 [1] LOG:  database system is ready to accept connections
10:01 [7] ERROR:  duplicate key value violates unique constraint "one"
10:02 [1] LOG:  client backend (PID 9) was terminated by signal 9: Killed
"""


def test_what_a_server_said_of_itself_leaves_out_what_it_refused(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(LINES)

    first, last = said_of_itself(log)

    assert first.endswith("ready to accept connections")
    assert last.endswith("terminated by signal 9: Killed")


def test_a_server_that_never_started_has_said_nothing(tmp_path: Path) -> None:
    assert said_of_itself(tmp_path / "server.log") == []
