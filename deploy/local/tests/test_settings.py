"""What is configured and kept wrongly is named."""

import pytest

from tip_local.errors import Fault
from tip_local.home import Home
from tip_local.settings import Settings


@pytest.mark.parametrize("text", ["0", "65536", "-1", "http", "80 80", "٨٠", "9" * 5000])
def test_a_bad_port_names_its_variable(text):
    with pytest.raises(Fault, match=r"^TIP_PORT must be a port number from 1 to 65535"):
        Settings.from_env({"TIP_PORT": text})


@pytest.mark.parametrize("variable", ["TIP_DEMO", "TIP_YIELD"])
def test_what_is_neither_yes_nor_no_names_its_variable(variable):
    with pytest.raises(Fault, match=rf"^{variable} must be yes or no, not 'false'"):
        Settings.from_env({variable: "false"})


def test_two_servers_cannot_be_given_one_port():
    with pytest.raises(Fault, match=r"^TIP_PORT and TIP_STREAM_PORT are both 9090"):
        Settings.from_env({"TIP_PORT": "9090"})


def test_a_damaged_file_is_named_and_not_replaced(folder):
    home = Home(folder / "home")
    home.create()
    (home.path / "secrets.json").write_text('{"identity": "half')

    with pytest.raises(Fault, match=r"secrets\.json is damaged: repair or remove it"):
        home.secrets()


def test_a_state_file_that_a_power_cut_left_empty_is_as_none(folder):
    home = Home(folder / "home")
    home.create()
    home.write_state({"pid": 1})
    (folder / "home" / "state.json").write_text("")

    assert home.state() == {}
