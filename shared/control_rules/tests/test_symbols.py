"""How symbols are read."""

import pytest

from control_rules import normalized_symbol


@pytest.mark.parametrize(
    ("text", "symbol"),
    [
        ("aapl", "AAPL"),
        ("  BRK.B ", "BRK.B"),
        ("btc/usd", "BTC/USD"),
        ("ES:2026-12", "ES:2026-12"),
        ("A" * 32, "A" * 32),
    ],
)
def test_symbols_are_trimmed_and_upper_cased(text: str, symbol: str) -> None:
    assert normalized_symbol(text) == symbol


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "A" * 33,
        "../X",
        "/X",
        ".X",
        "A B",
        "A\n",
        "\x1fA",
        "A\x00",
        "\u017f",
        "\u00df",
        "\u0131",
        "\uff21\uff21\uff30\uff2c",
        "\u0410APL",
        "A%2FB",
        "A\u202eB",
    ],
)
def test_what_only_resembles_a_symbol_is_none(text: str) -> None:
    assert normalized_symbol(text) is None
