"""The examples at the end of every `--help`, by the words of the command."""

import click

EXAMPLES: dict[str, tuple[str, ...]] = {
    "buy": ("tip buy AAPL 1 --limit 180 --wait", "tip buy AAPL 0.5 --tag alpha --json"),
    "sell": ("tip sell AAPL 1 --wait", "tip sell TSLA 5 --stop 240 --limit 239.5 --tif GTC"),
    "orders": ("tip orders --open", "tip orders --symbol AAPL --follow", "tip orders --json | jq '.data[].state'"),
    "orders unresolved": ("tip orders unresolved",),
    "orders resolve": (
        "tip orders resolve 3c9f-1 --never-arrived",
        "tip orders resolve 3c9f-1 --broker-order-id d53d5540 --status filled --filled 1 --price 180.02",
    ),
    "show": ("tip show 93327def", "tip show 93327def --json"),
    "replace": ("tip replace 93327def --limit 181", "tip replace 93327def --quantity 2 --wait"),
    "cancel": ("tip cancel 93327def --wait", "tip cancel --all --symbol AAPL", "tip cancel --all --yes --json"),
    "close": ("tip close AAPL --wait", "tip close --all --reason 'end of day' --yes"),
    "positions": ("tip positions", "tip positions --refresh --json"),
    "balances": ("tip balances",),
    "quote": ("tip quote AAPL MSFT",),
    "halt": ("tip halt --reason 'loss limit'", "tip halt --cancel-open --wait --yes"),
    "resume": ("tip resume",),
    "refusals": ("tip refusals --since 1h", "tip refusals --code SYMBOL_DISABLED --json"),
    "preview": ("tip preview buy AAPL 500", "tip preview sell TSLA 1 --limit 250 --json"),
    "controls": ("tip controls", "tip controls --account main --json"),
    "controls list": ("tip controls list",),
    "controls disable": ("tip controls disable GME --reason 'earnings tonight'",),
    "controls enable": ("tip controls enable GME",),
    "controls hours": (
        "tip controls hours AAPL --start 09:30 --end 16:00 --stale-after 60s",
        "tip controls hours AAPL --clear stale-after",
    ),
    "controls remove": ("tip controls remove GME", "tip controls remove AAPL --only hours --yes"),
    "controls history": ("tip controls history --symbol GME", "tip controls history --organization --json"),
    "limits": ("tip limits", "tip limits --json"),
    "limits show": ("tip limits show --symbol AAPL",),
    "limits set": (
        "tip limits set --max-quantity 100 --max-daily-loss 5000",
        "tip limits set --symbol TSLA --max-position-notional 20000 --no-allow-short",
    ),
    "limits remove": ("tip limits remove max_quantity", "tip limits remove --symbol TSLA --yes"),
    "accounts": ("tip accounts", "tip accounts --json | jq '.data[].id'"),
    "accounts list": ("tip accounts list",),
    "accounts show": ("tip accounts show", "tip accounts show main --json"),
    "accounts create": (
        "tip accounts create main --broker paper --environment paper",
        "tip accounts create berlin --broker alpaca --environment live --time-zone Europe/Berlin",
    ),
    "accounts change": (
        "tip accounts change main --name second",
        "tip accounts change 9202138f --time-zone Asia/Tokyo",
    ),
    "accounts disable": ("tip accounts disable main --reason audit", "tip accounts disable 9202138f --yes"),
    "accounts enable": ("tip accounts enable main",),
    "accounts delete": ("tip accounts delete second", "tip accounts delete second --cancel-open --yes"),
    "credentials": ("tip credentials", "tip credentials --account main --json"),
    "credentials list": ("tip credentials list",),
    "credentials add": (
        "tip credentials add first --wait",
        "tip credentials add first --account main --json < secret.json",
    ),
    "credentials rotate": ("tip credentials rotate first --file - --wait --yes",),
    "credentials delete": ("tip credentials delete first",),
    "keys": ("tip keys", "tip keys --json"),
    "keys list": ("tip keys list",),
    "keys create": (
        "tip keys create bot --environment paper --permission intent:read --permission intent:edit --expires 90d",
        "tip keys create bot --environment paper --permission intent:read | tip profiles add bot",
    ),
    "keys change": ("tip keys change bot --name robot", "tip keys change bot --permission intent:read --expires 30d"),
    "keys disable": ("tip keys disable bot",),
    "keys enable": ("tip keys enable bot",),
    "keys delete": ("tip keys delete bot --yes",),
    "people": ("tip people", "tip people --json"),
    "people list": ("tip people list",),
    "people add": ("tip people add 'auth0|5f7c8e' member",),
    "people role": ("tip people role 'auth0|5f7c8e' read_only",),
    "people remove": ("tip people remove 'auth0|5f7c8e'",),
    "profiles": ("tip profiles", "tip --profile paper balances"),
    "profiles list": ("tip profiles list --json",),
    "profiles add": (
        "tip profiles add paper --url https://tip.example --account 9202138f-45bd-58e2-a0ad-e3575587932f",
        "tip profiles add ci --token < token.txt",
    ),
    "profiles use": ("tip profiles use paper",),
    "profiles remove": ("tip profiles remove paper",),
    "verify": (
        "tip verify statement.jsonl --keys https://tip.example/.well-known/log-jwks.json",
        "tip verify --online",
        "tip verify --account 9202138f-45bd-58e2-a0ad-e3575587932f",
    ),
    "up": ("tip up",),
    "start": ("tip start",),
    "stop": ("tip stop",),
    "status": ("tip status",),
    "logs": ("tip logs -f", "tip logs web -n 20", "tip logs --intent 93327def-0000-4000-8000-000000000001"),
    "doctor": ("tip doctor", "tip --profile paper doctor --json"),
    "migrate": ("tip migrate",),
    "outbox": ("tip outbox list accounts",),
    "outbox list": ("tip outbox list accounts", "tip outbox list intents --status pending --limit 5"),
    "outbox explain": ("tip outbox explain accounts 17",),
    "outbox redrive": ("tip outbox redrive accounts 17", "tip outbox redrive accounts --all"),
    "token": ("tip token", "tip token read_only --lifetime 600"),
    "signing-keys": ("tip signing-keys rotate",),
    "signing-keys rotate": ("tip signing-keys rotate",),
    "signing-keys reseal": ("tip signing-keys reseal",),
    "log-keys": ("tip log-keys rotate",),
    "log-keys rotate": ("tip log-keys rotate",),
    "vault": ("tip vault rewrap",),
    "vault rewrap": ("tip vault rewrap",),
    "epoch": ("tip epoch list",),
    "epoch list": ("tip epoch list",),
    "epoch begin": ("tip epoch begin",),
    "broker": ("tip broker list", "tip broker check paper"),
    "broker list": ("tip broker list", "tip broker list --json"),
    "broker check": ("tip broker check paper", "tip broker check alpaca --claim replacement --json"),
    "completion": ('eval "$(tip completion bash)"', "tip completion fish > ~/.config/fish/completions/tip.fish"),
}


def with_examples(command: click.Command, words: str) -> click.Command:
    """The command and those below it, each with its examples."""
    if found := EXAMPLES.get(words):
        command.epilog = "\n".join(["\b", "Examples:", *(f"  {line}" for line in found)])
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            with_examples(below, f"{words} {name}")
    return command
