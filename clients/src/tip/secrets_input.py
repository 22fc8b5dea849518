"""Secrets that a person types or a program pipes in: never from the command line, where others can read them."""

import sys

import click

from tip.exits import WRONG_USAGE, Failure


def read_secret(what: str) -> str:
    secret: str = click.prompt(what, hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline()
    if not secret.strip():
        raise Failure(f"no {what} was given", WRONG_USAGE, hint="type it, or pipe it in")
    return secret.strip()
