"""Every command with its one line of help, by section: `tip --help` shows this table and imports no command."""

SECTIONS: dict[str, dict[str, str]] = {
    "Trading": {
        "buy": "Submit an order to buy.",
        "sell": "Submit an order to sell.",
        "orders": "List orders, follow them, and settle those of unknown outcome.",
        "show": "Show the timeline of an order.",
        "replace": "Change quantity or prices of an open order.",
        "cancel": "Cancel orders.",
        "close": "Close positions by market orders.",
        "positions": "List positions.",
        "balances": "Show cash, equity and buying power.",
        "quote": "Show the latest price of symbols.",
        "watch": "Show open orders, positions and what happens, live.",
        "mcp": "Serve an account to an AI agent, over the Model Context Protocol.",
    },
    "Risk": {
        "halt": "Refuse every new order of an account or organization.",
        "resume": "Accept orders again after a halt.",
        "refusals": "List the commands that controls refused.",
        "controls": "List and set what may be traded, and when; list who changed it.",
        "limits": "Show, set and remove limits of an account and of its symbols.",
        "preview": "Show whether an order would pass the controls.",
    },
    "Administration": {
        "accounts": "List, create, change, disable and delete trading accounts.",
        "credentials": "List, add, test, rotate and delete an account's broker credentials.",
        "keys": "List, create, change and delete API keys of the organization.",
        "people": "List, invite and change the members of the organization.",
        "audit": "List and export who changed people, keys and entitlements.",
        "init": "Make the first organization, its admin and an operator's service account.",
        "login": "Sign in, and keep the login as a profile.",
        "logout": "Sign out: end the login of a profile at its provider, and forget it here.",
        "profiles": "List, add and choose profiles: address, credential, account.",
    },
    "Records": {
        "statement": "Download an account's log as a file that proves itself.",
        "verify": "Check the chain of hashes of an account's log.",
    },
    "Platform on this machine": {
        "up": "Run the whole platform here, until Ctrl-C.",
        "start": "Run the whole platform in the background; returns when it is ready.",
        "stop": "Stop the platform; returns when everything has ended.",
        "status": "Show what is running.",
        "logs": "Show the log of everything, or of one process.",
        "doctor": "Check configuration, connections, clock, versions and migrations.",
        "backup": "Save the platform on this machine: database, secrets and a manifest, in a new folder.",
        "restore": "Bring a backup back, into an empty installation on this machine.",
        "migrate": "Bring the database schema up to date.",
        "outbox": "Look into a service's outbox and drive failed rows again.",
        "token": "Print a bearer token of the demo data.",  # no password - a line of help # nosec B105
        "signing-keys": "The keys that sign the platform's tokens.",
        "log-keys": "The keys that sign the heads of accounts' logs.",
        "vault": "Look after the keys that broker secrets are sealed with.",
        "epoch": "Show the epochs of the event logs, and begin one after a restore.",
        "broker": "List the platform's brokers, and check one that is installed here.",
        "completion": "Print the completion script of a shell.",
    },
}

SUMMARIES = {name: summary for commands in SECTIONS.values() for name, summary in commands.items()}


def module_of(name: str) -> str:
    return f"tip.{name.replace('-', '_')}"
