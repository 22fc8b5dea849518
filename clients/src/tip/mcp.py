"""`tip mcp`"""

import click

from tip.exits import WRONG_USAGE, Failure
from tip.session import Session, with_session


@click.command()
@click.option("--read-only", is_flag=True, help="Without the tools that submit, replace and cancel.")
@with_session
def command(session: Session, read_only: bool) -> None:
    """Serve an account to an AI agent, over the Model Context Protocol.

    It speaks on standard input and output.

    On live accounts it submits only with an API key that has bounds (accounts or symbols, and a budget) and an expiry:
    the platform enforces them, whatever the agent does. --read-only works with every credential.
    """
    try:
        from tip.mcp_server import server_of
    except ImportError:
        hint = "install the extra: pip install 'tip-cli[mcp]', here: make install EXTRAS=mcp"
        raise Failure("the MCP server needs the package mcp", WRONG_USAGE, hint=hint) from None
    from tip.mcp_bounds import check_key

    if not read_only:
        check_key(session.client, session.settings.key)
    server_of(session.account_client, read_only=read_only).run("stdio")
