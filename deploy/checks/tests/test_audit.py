"""The audit of dependencies reports "nothing known" only after querying a service that would know."""

import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

CHECKS = Path(__file__).resolve().parents[1]
PYTHON = CHECKS.parents[1] / ".venv" / "security" / "bin" / "python"
SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import audit
sys.exit(audit.main([Path(sys.argv[2])], (("osv", "--osv-url", sys.argv[3]),)))
"""
NOWHERE = "http://127.0.0.1:9"

needs_pip_audit = pytest.mark.skipif(not PYTHON.exists(), reason="`make security` installs pip-audit")
FLASK = {"name": "flask", "version": "3.1.0", "vulns": [{"id": "TEST-flask", "fix_versions": ["3.1.1"]}]}
HARMLESS = {"name": "flask", "version": "3.1.0", "vulns": []}
NOT_LOOKED_UP = {"name": "local", "skip_reason": "it is nowhere"}


class Service:
    """A vulnerability service that speaks OSV's API and knows what the test gives it."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                package = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["package"]["name"]
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(service.answer(package)).encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def answer(self, name: str) -> dict[str, Any]:
        if name not in self.known:
            return {}
        affected = [{"package": {"name": name, "ecosystem": "PyPI"}}]
        return {"vulns": [{"id": f"TEST-{name}", "summary": "x", "affected": affected}]}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.close()


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    file = tmp_path / "some.lock"
    file.write_text("flask==3.1.0\n")
    return file


def audit(lock: Path, url: str) -> tuple[int, str]:
    """With pip-audit itself, at this service."""
    command = [str(PYTHON), "-c", SCRIPT, str(CHECKS), str(lock), url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@needs_pip_audit
def test_a_service_that_knows_nothing_is_not_believed(service: Service, lock: Path) -> None:
    assert audit(lock, service.url) == (0, "not checked: no vulnerability service reachable\n")


@needs_pip_audit
def test_a_vulnerability_is_named_also_beside_a_dependency_that_could_not_be_looked_up(
    service: Service, lock: Path
) -> None:
    service.known = {"urllib3", "flask"}
    lock.write_text(f"flask==3.1.0\nlocal @ {NOWHERE}/local-1.0-py3-none-any.whl\n")

    code, output = audit(lock, service.url)

    assert code == 1
    assert "some.lock: flask 3.1.0: TEST-flask" in output and "some.lock: local: not checked: " in output


@pytest.fixture
def judged(lock: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., tuple[int, str]]]:
    """The output when pip-audit writes this about the known release, and this about the lock."""
    spec = importlib.util.spec_from_file_location("audit", CHECKS / "audit.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["audit"] = module
    spec.loader.exec_module(module)

    def judge(about_known: str, about_lock: str = "") -> tuple[int, str]:
        written = {"known.txt": about_known, lock.name: about_lock}
        code = module.main([lock], (("osv",),), lambda requirements, _service: written[requirements.name])
        return code, capsys.readouterr().out

    yield judge
    del sys.modules["audit"]


def written(*dependencies: dict[str, Any]) -> str:
    return json.dumps({"dependencies": dependencies})


@pytest.mark.parametrize("answer", ["", "no JSON", "{}", written(HARMLESS)])
def test_a_service_that_does_not_find_what_is_known_to_all_is_not_success(judged: Any, answer: str) -> None:
    assert judged(answer) == (0, "not checked: no vulnerability service reachable\n")


def test_a_known_vulnerability_is_named_and_fails(judged: Any) -> None:
    code, output = judged(written(FLASK), written(FLASK))

    assert (code, output) == (1, "some.lock: flask 3.1.0: TEST-flask, fixed in ['3.1.1']\n")


def test_a_lock_of_which_something_was_not_looked_up_is_not_called_clean(judged: Any) -> None:
    code, output = judged(written(FLASK), written(HARMLESS, NOT_LOOKED_UP))

    assert (code, output) == (0, "some.lock: local: not checked: it is nowhere\n")


def test_a_lock_about_which_no_answer_came_is_not_called_clean(judged: Any) -> None:
    assert judged(written(FLASK), "") == (0, "some.lock: not checked: no vulnerability service reachable\n")


def test_nothing_known_is_said_of_pins_that_a_believable_service_has_nothing_against(judged: Any) -> None:
    assert judged(written(FLASK), written(HARMLESS)) == (0, "some.lock: nothing known against it, says osv\n")
