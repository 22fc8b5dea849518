"""What the manual consists of: its pages in reading order, which file each is, and where it is served."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

HOME = "/manual"
FOLDER = "docs/manual"


@dataclass(frozen=True)
class Page:
    title: str
    file: str
    """In the repository."""
    address: str


@dataclass(frozen=True)
class Section:
    title: str
    pages: tuple[Page, ...]


def _own(title: str, name: str) -> Page:
    return Page(title, f"{FOLDER}/{name}.md", f"{HOME}/{name}")


def _reference(title: str, file: str, name: str) -> Page:
    return Page(title, file, f"{HOME}/reference/{name}")


SECTIONS = (
    Section(
        "Begin",
        (
            Page("What it is", f"{FOLDER}/README.md", HOME),
            _own("Quickstart", "quickstart"),
            _own("Concepts", "concepts"),
            _own("The console", "console"),
        ),
    ),
    Section(
        "Guides",
        (
            _own("Your first bot", "first-bot"),
            _own("Controls and limits", "controls-and-limits"),
            _own("Resuming a stream", "resuming-a-stream"),
            _own("Add a broker", "add-a-broker"),
            _own("Plug in a login", "plug-in-a-login"),
            _own("Go live", "go-live"),
            _own("Operate", "operate"),
            _own("Restore", "restore"),
        ),
    ),
    Section(
        "Look up",
        (
            _own("Error catalogue", "errors"),
            _own("Glossary", "glossary"),
            _own("Versioning", "versioning"),
            _reference("Changelog", "CHANGELOG.md", "changelog"),
        ),
    ),
    Section(
        "Reference",
        (
            _reference("Contract", "docs/contract.md", "contract"),
            _reference("The tip command", "docs/cli.md", "cli"),
            _reference("Python SDK", "clients/python/README.md", "python"),
            _reference("Brokers", "docs/brokers.md", "brokers"),
            _reference("Broker plug-ins", "shared/brokers/README.md", "broker-plug-ins"),
            _reference("Login providers", "docs/login.md", "login"),
            _reference("AI agents", "docs/mcp.md", "mcp"),
            _reference("Statements", "docs/statement.md", "statement"),
            _reference("Operations", "docs/operations.md", "operations"),
            _reference("Architecture", "docs/architecture.md", "architecture"),
            _reference("Reliability", "docs/reliability.md", "reliability"),
            _reference("Security policy", "SECURITY.md", "security-policy"),
            _reference("Security", "docs/security.md", "security"),
            Page("Decisions", "docs/decisions/README.md", f"{HOME}/decisions"),
        ),
    ),
)
IN_ORDER = tuple(page for section in SECTIONS for page in section.pages)


def decisions(names: Iterable[str]) -> tuple[Page, ...]:
    """A page for each decision, by the names of their files; they are in no navigation."""
    numbered = sorted(name for name in names if name[:4].isdigit())
    return tuple(
        Page(f"Decision {int(name[:4])}", f"docs/decisions/{name}", f"{HOME}/decisions/{name.removesuffix('.md')}")
        for name in numbered
    )


def neighbours(page: Page) -> tuple[Page | None, Page | None]:
    """The pages before and after it, in reading order."""
    if page not in IN_ORDER:
        return None, None
    place = IN_ORDER.index(page)
    return IN_ORDER[place - 1] if place else None, IN_ORDER[place + 1] if place + 1 < len(IN_ORDER) else None


def by_address(pages: Iterable[Page]) -> Mapping[str, Page]:
    return {page.address: page for page in pages}


def by_file(pages: Iterable[Page]) -> Mapping[str, Page]:
    return {page.file: page for page in pages}
