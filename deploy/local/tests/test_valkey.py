import pytest
import redis

from tip_local.processes import command_line
from tip_local.valkey import ONCE, EmbeddedValkey


@pytest.fixture
def server(folder):
    with EmbeddedValkey(folder / "valkey") as running:
        yield running


@pytest.fixture
def connect():
    opened = []

    def make(url):
        opened.append(redis.Redis.from_url(url, retry=ONCE, decode_responses=True))
        return opened[-1]

    yield make
    for client in opened:
        client.close()


def test_valkey_killed_hard_comes_back_with_its_data(server, connect):
    connect(server.url).set("kept", "7")

    server.kill()
    server.start()

    assert connect(server.url).get("kept") == "7"


def test_valkey_restarted_keeps_its_data(server, connect):
    connect(server.url).set("kept", "7")

    server.restart()

    assert connect(server.url).get("kept") == "7"


def test_nothing_is_ever_evicted_and_everything_is_appended(server, connect):
    client = connect(server.url)

    assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    assert client.config_get("append*") == client.config_get("append*") | {
        "appendonly": "yes",
        "appendfsync": "everysec",
    }


def test_nobody_enters_without_the_password(server, connect):
    with pytest.raises(redis.AuthenticationError):
        connect(f"redis://127.0.0.1:{server.port}/0").ping()

    assert server.configuration_file.stat().st_mode & 0o777 == 0o600
    assert server.password not in command_line(server.pid)


def test_a_server_left_running_is_taken_over_with_its_data(server, connect):
    connect(server.url).set("kept", "7")

    with EmbeddedValkey(server.directory) as successor:
        assert connect(successor.url).get("kept") == "7"
        assert server.pid is None


def test_a_path_with_spaces_and_quotes_is_no_obstacle(folder, connect):
    with EmbeddedValkey(folder / 'it\'s a "place"') as server:
        assert connect(server.url).ping()
