"""Markdown as HTML for the manual: raw HTML stays text, nothing has inline style, headings have ids."""

import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

LANGUAGES = frozenset({"console", "json", "python", "toml"})
"""What is coloured; of any other language the text is shown."""
_COMMENT = re.compile(r"^<!--.*?-->$", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(
    r'<picture><source media="\(prefers-color-scheme: dark\)" srcset="[^"]+">'
    r'<img alt="([^"<>\[\]]+)" src="([^"\s()]+)"(?: width="\d+")?></picture>'
)
"""How a code host shows one of two pictures; here it is an image like others, and all other HTML stays text."""
_NOT_IN_IDS = re.compile(r"[^\w\- ]")

Link = Callable[[str], str | None]
"""Where a link of the file leads, or None if it leads nowhere that is served."""
Picture = Callable[[str, str], str]
"""The HTML of an image, by its address in the file and its description."""


class Heading(NamedTuple):
    level: int
    id: str
    text: str


class Passage(NamedTuple):
    """What stands below one heading, without markup."""

    heading: Heading
    text: str


class Rendered(NamedTuple):
    html: str
    headings: tuple[Heading, ...]


def render(text: str, link: Link, picture: Picture) -> Rendered:
    tokens = _tokens(text)
    headings = tuple(heading for heading, _ in _headings(tokens))
    for token in _all(tokens):
        _without_style(token)
    for inline in tokens:
        if inline.children:
            inline.children = [_drawn(child, picture) for child in _linked(inline.children, link)]
    return Rendered(_parser.renderer.render(tokens, _parser.options, {}), headings)


def passages(text: str) -> list[Passage]:
    """For the search: each heading with the text up to the next."""
    tokens = _tokens(text)
    starts = list(_headings(tokens))
    ends = [place for _, place in starts[1:]] + [len(tokens)]
    return [
        Passage(heading, " ".join(map(_plain, tokens[start + 3 : end])).strip())
        for (heading, start), end in zip(starts, ends, strict=True)
    ]


def _tokens(text: str) -> list[Token]:
    return _parser.parse(_PICTURE.sub(r"![\1](\2)", _COMMENT.sub("", text)))


def _headings(tokens: Sequence[Token]) -> Iterator[tuple[Heading, int]]:
    """Each with the place of its first token, which gets the id that code hosts give it, too."""
    taken: dict[str, int] = {}
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            text = _plain(tokens[place + 1])
            slug = _NOT_IN_IDS.sub("", text.lower()).replace(" ", "-")
            times = taken[slug] = taken.get(slug, -1) + 1
            token.attrSet("id", f"{slug}-{times}" if times else slug)
            yield Heading(int(token.tag[1]), str(token.attrs["id"]), text), place


def _plain(token: Token) -> str:
    if token.type == "inline":
        return "".join(child.content if child.content else " " for child in token.children or () if child.nesting == 0)
    return token.content if token.type in ("fence", "code_block") else ""


def _all(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _all(token.children or ())


def _without_style(token: Token) -> None:
    """Columns are aligned by an inline style, which our pages do not allow."""
    if style := token.attrs.pop("style", ""):
        token.attrSet("class", str(style).replace("text-align:", "align-"))


def _linked(tokens: Sequence[Token], link: Link) -> Iterator[Token]:
    leads = True
    for token in tokens:
        if token.type == "link_open":
            address = link(str(token.attrs.get("href", "")))
            leads = address is not None
            token.attrs = {"href": address} if address is not None else {"class": "unlinked"}
        if not leads and token.type in ("link_open", "link_close"):
            token.tag = "span"
        yield token


def _drawn(token: Token, picture: Picture) -> Token:
    if token.type != "image":
        return token
    return Token("html_inline", "", 0, content=picture(str(token.attrs["src"]), token.content))


def _code(text: str, language: str) -> str:
    if language == "mermaid":
        return f'<details class="source"><summary>Diagram as text (Mermaid)</summary>{_block(escape(text))}</details>'
    if language not in LANGUAGES:
        return _block(escape(text))
    return _block(highlight(text, get_lexer_by_name(language), HtmlFormatter(nowrap=True)))


def _block(marked: str) -> str:
    return f'<pre class="code"><code>{marked}</code></pre>'


def _fence(_: Any, tokens: Sequence[Token], place: int, *__: Any) -> str:
    return _code(tokens[place].content, tokens[place].info.strip())


def _table(_: Any, tokens: Sequence[Token], place: int, *__: Any) -> str:
    """Wide ones are scrolled, also with the keyboard."""
    if tokens[place].nesting == 1:
        return '<div class="table" role="group" aria-label="Table" tabindex="0"><table>'
    return "</table></div>"


def _made() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    for name, rule in (("fence", _fence), ("table_open", _table), ("table_close", _table)):
        parser.add_render_rule(name, rule)
    return parser


_parser = _made()
