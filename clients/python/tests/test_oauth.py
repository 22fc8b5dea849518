"""What a provider says, and when a stored token is renewed. The flows themselves run on whole platforms."""

import json
from pathlib import Path

import pytest

import tip_client as tip
from tip_client.oauth import OAuthClient, Provider, Tokens, device_code_in, provider_in, tokens_in
from tip_client.stored_login import Login, login_file, new_login

PROVIDER = Provider("https://id.example", "https://id.example/token", None, "https://id.example/authorize?a=b", None)
DOCUMENT = {"issuer": "https://id.example", "token_endpoint": "https://id.example/token"}


def login(expires_in: float = 600, refresh_token: str | None = "r") -> Login:
    return new_login("tip", PROVIDER, Tokens("a", refresh_token, expires_in), 1000.0)


@pytest.mark.parametrize(("expires_in", "due_at"), [(600, 1570), (60, 1030), (10, 1005), (0, 1000)])
def test_a_token_is_renewed_before_it_ends(expires_in: float, due_at: float) -> None:
    made = login(expires_in)

    assert made.is_due(due_at) and (expires_in == 0 or not made.is_due(due_at - 0.1))


def test_a_clock_that_was_set_back_makes_a_token_due() -> None:
    assert login().is_due(999.0)


def test_a_provider_that_does_not_rotate_keeps_its_refresh_token() -> None:
    kept = login().renewed(Tokens("b", None, 600), 2000.0)
    rotated = login().renewed(Tokens("b", "s", 600), 2000.0)

    assert (kept.access_token, kept.refresh_token, kept.due_at) == ("b", "r", 2570.0)
    assert rotated.refresh_token == "s"


def test_a_login_without_a_refresh_token_ends_with_its_access_token(tmp_path: Path) -> None:
    stored = tip.StoredLogin(tmp_path / "x.json")
    stored.store(login(refresh_token=None))

    with pytest.raises(tip.LoginEnded):
        stored()


def test_nobody_is_signed_in_without_a_file(tmp_path: Path) -> None:
    with pytest.raises(tip.LoginEnded):
        tip.StoredLogin(tmp_path / "x.json")()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"client_id": 1}', "{"])
def test_a_file_that_is_no_login_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.touch(mode=0o600)
    file.write_text(text)

    with pytest.raises(tip.ConfigurationError, match=r"x\.json"):
        tip.StoredLogin(file)()


def test_a_login_that_others_may_read_is_refused(tmp_path: Path) -> None:
    stored = tip.StoredLogin(tmp_path / "x.json")
    stored.store(login())
    stored.file.chmod(0o640)

    with pytest.raises(tip.ConfigurationError, match="chmod 600"):
        stored()


def test_tokens_are_never_shown(tmp_path: Path) -> None:
    stored = tip.StoredLogin(tmp_path / "x.json")
    made = new_login("tip", PROVIDER, Tokens("very-secret-a", "very-secret-r", 1), 0)
    stored.store(made)

    assert "secret" not in repr(made) + repr(stored) + repr(tip.Settings(token=stored))


def test_a_profile_names_its_login_and_no_other_folder(tmp_path: Path) -> None:
    file = tmp_path / "tip" / "config.toml"
    file.parent.mkdir()
    file.touch(mode=0o600)
    file.write_text('[profiles.a]\nurl = "https://tip.example"\nlogin = "../../a"\n')
    settings = tip.Settings.from_env("a", {"XDG_CONFIG_HOME": str(tmp_path)})

    assert isinstance(settings.token, tip.StoredLogin)
    assert settings.token.file == login_file(file, "../../a")
    assert settings.token.file.parent == tmp_path / "tip" / "logins"
    other = tip.Settings.from_env("a", {"XDG_CONFIG_HOME": str(tmp_path), "TIP_URL": "https://other.example"})
    assert other.token is None, "a login is for the address that it stands beside"


@pytest.mark.parametrize("other", ['key = "k"', 'token = "t"'])
def test_a_profile_has_one_credential(tmp_path: Path, other: str) -> None:
    file = tmp_path / "tip" / "config.toml"
    file.parent.mkdir()
    file.touch(mode=0o600)
    file.write_text(f'[profiles.a]\nlogin = "a"\n{other}\n')

    with pytest.raises(tip.ConfigurationError):
        tip.Settings.from_env("a", {"XDG_CONFIG_HOME": str(tmp_path)})


@pytest.mark.parametrize(
    "changes",
    [
        {"token_endpoint": None},
        {"token_endpoint": "http://id.example/token"},
        {"device_authorization_endpoint": "http://id.example/device"},
        {"authorization_endpoint": 7},
    ],
    ids=json.dumps,
)
def test_an_address_that_protects_less_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(tip.UnexpectedAnswer):
        provider_in({**DOCUMENT, **changes}, "https://id.example")


@pytest.mark.parametrize("answer", [{}, {"access_token": "a", "expires_in": "soon"}], ids=json.dumps)
def test_an_answer_without_tokens_is_none(answer: dict[str, object]) -> None:
    for read in (tokens_in, device_code_in):
        with pytest.raises(tip.UnexpectedAnswer):
            read(answer)


def test_only_the_answer_to_our_own_request_is_redeemed() -> None:
    client = OAuthClient("tip", scope="openid")
    request = client.begin_code(PROVIDER, "http://127.0.0.1:1/callback")

    assert request.address.startswith("https://id.example/authorize?a=b&response_type=code&client_id=tip&")
    assert "scope=openid" in request.address and request.verifier not in request.address
    for answer, code in (
        ({"state": "other", "code": "c"}, "invalid_state"),
        ({"state": request.state, "code": "c", "iss": "https://evil.example"}, "invalid_issuer"),
        ({"state": request.state, "error": "access_denied"}, "access_denied"),
    ):
        with pytest.raises(tip.LoginRefused) as raised:
            client.redeem(PROVIDER, request, answer)
        assert raised.value.code == code
