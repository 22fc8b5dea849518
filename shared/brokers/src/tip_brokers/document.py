"""docs/brokers.md, made from the descriptions: `python -m tip_brokers.document > docs/brokers.md`."""

import sys
from collections.abc import Iterable, Mapping, Sequence

from tip_brokers.capabilities import Capabilities
from tip_brokers.description import BrokerDescription
from tip_brokers.registry import installed

HEAD = """# Brokers

Made by `python -m tip_brokers.document` from the brokers' own descriptions; a test fails when this file and they
differ. `GET /v1/brokers` answers the same of a running platform, with whatever else is installed there. How to add one:
[shared/brokers](../shared/brokers/README.md).

What a broker cannot do is refused when it is submitted: 422 `broker_cannot`, with a pointer to the field. `Bracket` and
`OneCancelsOther` need that two open orders may close one position (yes), or that the two exits are one order there,
with one of the times in force that are named.

`tip broker check NAME` shows whether an adapter keeps what this table claims: at its simulator, or with `--sandbox` at
the broker's sandbox ([how](../shared/testing/README.md#checking-a-broker)). It names every fact that it checked or
skipped; exit code 1 if something claimed is not kept.
"""
COLUMNS = ("broker", "name", "environments", "order kinds", "replacement", "client ids", "stream", "quotes",
           "fills by id", "fractions", "by notional", "extended hours",
           "Bracket, OneCancelsOther", "DIRECT", "symbols", "calls")  # fmt: skip
CLIENT_IDS = """
What becomes of an order whose answer was lost follows from what the broker does with a client order id that it has
seen before (`client ids`):

| client ids | the broker | after an unknown outcome |
|---|---|---|
| `unique` | refuses it for good | queried, and sent again if the broker does not have it: never twice |
| `header` | answers the first order again, for a time | the same, within that time |
| `echo` | takes it twice, and can be queried by it | sent again when it was not there several times |
| `none` | cannot be queried by it | waits for an operator (`tip orders unresolved`, `tip orders resolve`) |
"""


def document(brokers: Iterable[BrokerDescription]) -> str:
    described = list(brokers)
    return "\n".join([HEAD, *_capabilities(described), CLIENT_IDS, *_credentials(described), "", *_settings(described)])


def _capabilities(brokers: Sequence[BrokerDescription]) -> list[str]:
    rows = [(f"**{broker.title}**", f"`{broker.name}`", *_cells(broker, broker.capabilities)) for broker in brokers]
    return _table(COLUMNS, rows)


def _cells(broker: BrokerDescription, can: Capabilities) -> tuple[str, ...]:
    kinds, extended = _kinds(can.kinds), _kinds(can.extended_hours) or "no"
    calls = f"{can.calls_per_minute} a minute" if can.calls_per_minute else "-"
    flags = (_yes(flag) for flag in (can.streams, can.quotes, can.executions, can.fractions))
    sizes = (_joined(can.notional_orders), extended, _exits(can), _yes(can.routing))
    environments, ids = ", ".join(broker.environments), (f"`{can.replacement}`", f"`{can.client_ids}`")
    return environments, kinds, *ids, *flags, *sizes, can.symbols.example, calls


def _exits(can: Capabilities) -> str:
    return "yes" if can.shared_exits else _joined(can.exit_pairs)


def _joined(times: Sequence[str]) -> str:
    return ", ".join(times) or "no"


def _kinds(kinds: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{kind} ({', '.join(times)})" for kind, times in kinds.items())


def _credentials(brokers: Sequence[BrokerDescription]) -> list[str]:
    rows = [(broker.title, _secret(broker)) for broker in brokers]
    return ["## Credentials", "", *_table(("broker", "secret"), rows)]


def _secret(broker: BrokerDescription) -> str:
    parts = ", ".join(f"`{part.name}`" + ("" if part.required else " (optional)") for part in broker.credential)
    return parts if broker.needs_credential else f"{parts}; an account without one trades all the same"


def _settings(brokers: Sequence[BrokerDescription]) -> list[str]:
    """Each once: exchanges of one package share theirs."""
    each = dict.fromkeys(setting for broker in brokers for setting in broker.settings)
    rows = [
        (f"`{setting.variable}`", f"`{setting.default}`" if setting.default else "-", setting.meaning)
        for setting in each
    ]
    return ["## Settings of the executor and the reconciler", "", *_table(("variable", "default", "meaning"), rows), ""]


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [names, ["---"] * len(names), *rows]
    return [f"| {' | '.join(cells)} |".replace("| --- ", "|---").replace("--- |", "---|") for cells in lines]


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


if __name__ == "__main__":
    sys.stdout.write(document(installed().values()))
