"""Where the platform is and who calls."""

from pathlib import Path

import pytest

import tip_client as tip

PROFILES = """
default = "paper"
[profiles.paper]
url = "https://paper.example"
key = "tip_paper_of-the-profile"
account = "a-1"
[profiles.admin]
url = "https://paper.example"
token = "of-the-profile"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    file = tmp_path / "tip" / "config.toml"
    file.parent.mkdir()
    file.write_text(PROFILES)
    file.chmod(0o600)
    return tmp_path


def of(home: Path, profile: str | None = None, **environment: str) -> tip.Settings:
    return tip.Settings.from_env(profile, {"XDG_CONFIG_HOME": str(home), **environment})


def test_without_anything_it_is_the_platform_of_make_up(tmp_path: Path) -> None:
    settings = of(tmp_path)

    assert (settings.url, settings.key, settings.grpc_target) == ("http://127.0.0.1:8080", None, "127.0.0.1:9090")


def test_the_environment_counts_before_the_profile(home: Path) -> None:
    settings = of(home, TIP_ACCOUNT="a-2")

    assert (settings.url, settings.account) == ("https://paper.example", "a-2")
    assert settings.headers() == {"x-api-key": "tip_paper_of-the-profile"}
    assert of(home, TIP_TOKEN="t").headers() == {"authorization": "Bearer t"}
    assert of(home, TIP_PROFILE="admin").headers() == {"authorization": "Bearer of-the-profile"}


def test_a_key_of_the_profile_is_never_sent_to_another_address(home: Path) -> None:
    assert of(home, TIP_URL="https://other.example").headers() == {}
    assert of(home, TIP_URL="https://other.example", TIP_KEY="k").headers() == {"x-api-key": "k"}


def test_a_key_of_the_environment_is_never_sent_to_the_profile_s_addresses(home: Path) -> None:
    places = 'events_url = "https://events.example"\nstream_target = "stream.example:1"\nca = "/own/ca.crt"\n'
    (home / "tip" / "config.toml").write_text(f'[profiles.other]\nurl = "https://paper.example"\n{places}')

    other = of(home, "other", TIP_URL="https://other.example", TIP_KEY="k")
    named = of(home, "other", TIP_URL="https://other.example", TIP_EVENTS_URL="https://e.example", TIP_CA="/ca.crt")

    assert (other.events_url, other.grpc_target, other.ca) == (None, "other.example:443", None)
    assert (named.events_url, named.ca) == ("https://e.example", "/ca.crt")
    assert of(home, "other").events_url == "https://events.example"


def test_behind_an_ingress_everything_is_at_one_address(home: Path) -> None:
    assert of(home).grpc_target == "paper.example:443"
    assert tip.Settings(url="https://[::1]:8443").grpc_target == "[::1]:8443"
    assert of(home, TIP_STREAM_TARGET="stream.example:1").grpc_target == "stream.example:1"


def test_a_file_that_others_may_read_is_refused(home: Path) -> None:
    (home / "tip" / "config.toml").chmod(0o644)

    with pytest.raises(tip.ConfigurationError, match="chmod"):
        of(home)


@pytest.mark.parametrize(
    ("text", "profile"),
    [
        ("[profiles.paper", None),
        ("", "missing"),
        ("[profiles.paper]\nkye='x'", "paper"),
        ("profiles = 3", "paper"),
        ("[profiles.a]\nurl=7", "a"),
    ],
)
def test_a_profile_that_cannot_be_used_is_refused(home: Path, text: str, profile: str | None) -> None:
    (home / "tip" / "config.toml").write_text(text)

    with pytest.raises(tip.ConfigurationError):
        of(home, profile)


@pytest.mark.parametrize("url", ["", "ftp://a", "https://", "https://user:secret@a", "https://a?key=b"])
def test_an_address_is_an_address_and_holds_no_secret(url: str) -> None:
    with pytest.raises(tip.ConfigurationError) as raised:
        tip.Settings(url=url)

    assert "secret@" not in str(raised.value)


def test_credentials_are_never_shown(home: Path) -> None:
    assert "of-the-profile" not in repr(of(home)) + repr(of(home, "admin"))


def test_a_caller_has_one_credential() -> None:
    with pytest.raises(tip.ConfigurationError):
        tip.Settings(key="k", token="t")


@pytest.mark.parametrize("broken", ["k\n", "k\r\nx-evil: 1", "schlüssel", "\x00"], ids=repr)
def test_what_no_header_can_hold_is_refused_before_it_is_sent(broken: str) -> None:
    for settings in ({"key": broken}, {"token": broken}, {"organization": broken}):
        with pytest.raises(tip.ConfigurationError) as raised:
            tip.Settings(**settings)
        assert broken not in str(raised.value)
    with pytest.raises(tip.ConfigurationError), tip.Client(account="a", key="k") as client:
        client.buy("AAPL", 1, idempotency_key=broken)


def test_a_token_may_be_renewed() -> None:
    tokens = iter(["first", "second"])
    settings = tip.Settings(token=lambda: next(tokens))

    assert [settings.headers()["authorization"] for _ in range(2)] == ["Bearer first", "Bearer second"]


def test_a_certificate_authority_must_be_one(tmp_path: Path) -> None:
    with pytest.raises(tip.ConfigurationError):
        tip.Client(settings=tip.Settings(ca=str(tmp_path / "missing.crt")))
