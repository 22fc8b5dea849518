"""The tools of `tip mcp`: what an agent may read, try, submit, replace and cancel, on the SDK.

Every refusal is the platform's own; a tool only says it in a form that an agent can act upon.
"""

from collections.abc import Callable
from functools import wraps
from importlib.metadata import version
from itertools import islice
from typing import Annotated, Any, ParamSpec
from uuid import uuid4

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from tip.exits import Failure
from tip.mcp_orders import Amount, AnyOrder
from tip.plain import json_of, json_text
from tip.sdk_failures import failure_of
from tip_client import Client, NotFound, TipError

P = ParamSpec("P")

INSTRUCTIONS = """Tools of a trading platform, for one account unless `account` names another that the key sees.
Try an order with `preview` before you `submit` it. A refusal has a `code`, `reasons` and a `hint`: the platform's
controls and the bounds of this key decide, and repeating a refused order does not help. If an error says
`outcome_unknown`, call the same tool again with the same arguments and its `idempotency_key`: it is done once."""

_READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=True)
_SUBMITS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True)
_CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)
_HINTS = {
    "KEY_NOTIONAL_ABOVE_LIMIT": "the budget of this key for the day does not suffice: order less, or stop; an admin "
    "can raise it",
    "KEY_SYMBOL_NOT_ALLOWED": "this key may not trade the symbol; choose one of its symbols, or stop",
}
MOST = 100

Account = Annotated[str | None, Field(description="Id of the account; the configured one by default.")]
Once = Annotated[str | None, Field(description="Only to repeat a call whose outcome was unknown.")]
Count = Annotated[int, Field(ge=1, le=MOST, description="How many at most.")]


def server_of(client: Client, *, read_only: bool) -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer(
        "tip", instructions=INSTRUCTIONS, version=version("tip-cli"), log_level="WARNING"
    )
    tools = Tools(client)
    for reads in (tools.accounts, tools.positions, tools.balances, tools.quote, tools.orders, tools.show,
                  tools.limits, tools.controls, tools.preview):  # fmt: skip
        server.tool(annotations=_READS, structured_output=False)(explained(reads))
    if not read_only:
        server.tool(annotations=_SUBMITS, structured_output=False)(explained(tools.submit))
        for changes in (tools.replace, tools.cancel):
            server.tool(annotations=_CHANGES, structured_output=False)(explained(changes))
    return server


def explained(tool: Callable[P, Any]) -> Callable[P, Any]:
    """The tool with its answer as JSON, and its failures as errors that say what to do."""

    @wraps(tool)
    def run(*args: P.args, **kwargs: P.kwargs) -> Any:
        try:
            return json_text(tool(*args, **kwargs))
        except TipError as error:
            text = json_text(_error(failure_of(error)))
            return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)

    return run


def _error(failure: Failure) -> dict[str, Any]:
    found: dict[str, Any] = failure.document()["error"]
    found.pop("exit_code")
    codes = [reason["code"] for reason in found.get("reasons", ())]
    return found | {"hint": next((_HINTS[code] for code in codes if code in _HINTS), found["hint"])}


class Tools:
    """Each method is a tool; its docstring is what the agent reads about it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def accounts(self) -> Any:
        """List the trading accounts that this credential sees."""
        return list(self._client.accounts.list())

    def positions(self, account: Account = None) -> Any:
        """What the account holds, each figure with its age."""
        return self._of(account).positions()

    def balances(self, account: Account = None) -> Any:
        """Cash, equity and buying power of the account."""
        return self._of(account).balances()

    def quote(self, symbol: str, account: Account = None) -> Any:
        """The latest price of a symbol at the account's broker, with its age."""
        return self._of(account).quote(symbol)

    def orders(self, status: str | None = None, symbol: str | None = None, limit: Count = 20,
               account: Account = None) -> Any:  # fmt: skip
        """Orders, newest first. `status` is open, closed, or one status such as FILLED."""
        found = self._of(account).orders(status=status, symbol=symbol, newest_first=True, page_size=limit)
        return list(islice(found, limit))

    def show(self, intent_id: str, account: Account = None) -> Any:
        """The timeline of an order: commands, calls to the broker, fills and refusals, in order."""
        return list(islice(self._of(account).timeline(intent_id), MOST))

    def limits(self, account: Account = None) -> Any:
        """The limits of the account, and what this key is bounded to."""
        of_account = self._of(account).controls
        return {"account_limits": _if_set(of_account.limits), "key_bounds": self._client.me.read().bounds}

    def controls(self, account: Account = None) -> Any:
        """The trading state of the account, and the symbols that have controls."""
        of_account = self._of(account).controls
        return {"account": _if_set(of_account.trading_state), "symbols": list(islice(of_account.symbols(), MOST))}

    def preview(self, order: AnyOrder, account: Account = None) -> Any:
        """Try an order: decided as a submit would be, nothing is written or sent."""
        return self._of(account).dry_run(order.new_order())

    def submit(self, order: AnyOrder, account: Account = None, idempotency_key: Once = None) -> Any:
        """Submit an order. It is accepted or refused at once; `show` says what becomes of it."""
        key = idempotency_key or str(uuid4())
        made = self._of(account).submit(order.new_order(), idempotency_key=key)
        return json_of(made) | {"idempotency_key": key}

    def replace(
        self,
        intent_id: str,
        quantity: Amount | None = None,
        limit_price: Amount | None = None,
        stop_price: Amount | None = None,
        account: Account = None,
        idempotency_key: Once = None,
    ) -> Any:
        """Change quantity or prices of an open order; what is not given stays. The quantity is the new total."""
        key = idempotency_key or str(uuid4())
        order = self._of(account).order(intent_id)
        terms: dict[str, Any] = {"quantity": quantity, "limit": limit_price, "stop": stop_price}
        return json_of(order.replace(**terms, idempotency_key=key)) | {"idempotency_key": key}

    def cancel(self, intent_id: str, account: Account = None, idempotency_key: Once = None) -> Any:
        """Have an open order canceled; it may be filled before."""
        key = idempotency_key or str(uuid4())
        return json_of(self._of(account).cancel(intent_id, idempotency_key=key)) | {"idempotency_key": key}

    def _of(self, account: str | None) -> Client:
        return self._client.for_account(account) if account else self._client


def _if_set(read: Callable[[], Any]) -> Any:
    """What was never set is no failure."""
    try:
        return read()
    except NotFound:
        return None
