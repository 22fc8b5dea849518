import pytest
from click.testing import CliRunner

from tip import broker, cli


def test_without_the_kit_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(broker, "NEEDED", ("a_kit_that_is_not_installed",))

    done = CliRunner().invoke(cli.main, ["broker", "check", "paper"])

    assert done.exit_code == 2
    assert (
        done.output == "tip: a_kit_that_is_not_installed missing: install tip-testing[check] (here: make install-dev)\n"
    )


@pytest.mark.parametrize("word", ["--token=x", "--key_id=x"])
def test_no_option_takes_a_secret(word):
    assert CliRunner().invoke(cli.main, ["broker", "check", "paper", word]).exit_code == 2
