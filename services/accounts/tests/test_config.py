"""What accounts refuses to start with, and the documents it serves about itself."""

from pathlib import Path

import pytest
from flask.testing import FlaskClient

from accounts.app import create_app, dependencies
from accounts.config import Config
from chassis.config import BadConfiguration
from tip_testing.platform_plugin import Platform

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"VAULT_KEY_ENCRYPTION_KEY": ""}, "VAULT_KEY_ENCRYPTION_KEY"),
        ({"VAULT_KEY_ENCRYPTION_KEY": "c2hvcnQ="}, "VAULT_KEY_ENCRYPTION_KEY"),
        ({"VAULT_KEY_ENCRYPTION_KEY_FILE": "/nowhere/key"}, "VAULT_KEY_ENCRYPTION_KEY"),
        (
            {"VAULT_KEY_ENCRYPTION_KEY": "", "VAULT_KEY_ENCRYPTION_KEY_FILE": "/nowhere/key"},
            "VAULT_KEY_ENCRYPTION_KEY_FILE",
        ),
        ({"EARLIER_VAULT_KEY_ENCRYPTION_KEYS": "c2hvcnQ="}, "VAULT_KEY_ENCRYPTION_KEY"),
        ({"FINGERPRINT_KEY": "c2hvcnQ="}, "FINGERPRINT_KEY"),
        ({"VAULT": "paper"}, "VAULT"),
        ({"VAULT": "hashicorp"}, "VAULT_ADDR"),
        ({"INTERNAL_ORGANIZATIONS": "acme"}, "INTERNAL_ORGANIZATIONS"),
        ({"LIVE_REHEARSAL": "perhaps"}, "LIVE_REHEARSAL"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_and_not_quoted(
    platform: Platform, change: dict[str, str], named: str
) -> None:
    with pytest.raises(BadConfiguration) as refused:
        dependencies(Config.from_env(platform.environment("accounts", **change)))

    assert named in str(refused.value)
    assert "c2hvcnQ=" not in str(refused.value)


def test_the_key_may_come_from_a_file(platform: Platform, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(platform.vault_key + "\n")
    change = {"VAULT_KEY_ENCRYPTION_KEY": "", "VAULT_KEY_ENCRYPTION_KEY_FILE": str(file)}

    from_file = dependencies(Config.from_env(platform.environment("accounts", **change)))
    from_variable = dependencies(Config.from_env(platform.environment("accounts")))

    assert from_file.keyring.current_id == from_variable.keyring.current_id


def test_no_setting_that_is_secret_shows_itself(platform: Platform) -> None:
    config = Config.from_env(platform.environment("accounts", VAULT_TOKEN="hvs.token"))

    assert platform.vault_key not in repr(config) and "hvs.token" not in repr(config)
    assert platform.vault_key not in repr(dependencies(config))


def test_every_own_setting_is_in_the_readme() -> None:
    own = {field for field in Config.__dataclass_fields__ if field in Config.__annotations__}
    variables = {Config.__dataclass_fields__[field].metadata["variable"] for field in own}

    assert {variable for variable in variables if f"`{variable}`" not in README.read_text()} == set()


def test_every_endpoint_is_in_the_document_with_plain_text_errors_where_specified(client: FlaskClient) -> None:
    paths = client.get("/openapi.json").json["paths"]

    assert len(paths) == 12
    refused = paths["/v1/accounts/outbox/health"]["get"]["responses"]["403"]["content"]
    assert list(refused) == ["text/plain"]
    assert "secret" not in str(paths["/v1/accounts/{account_id}/credentials/{credential_id}"]["get"]["responses"])


def test_a_process_with_a_bad_setting_ends_with_one_line(
    platform: Platform, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        create_app(platform.web_environment("accounts", VAULT="paper"))

    assert (ended.value.code, capsys.readouterr().err) == (
        2,
        "accounts: configuration: VAULT: must be one of local, hashicorp\n",
    )
