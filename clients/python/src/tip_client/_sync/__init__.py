# Made from _async/__init__.py by generate.py; `make client` makes it anew.
"""The synchronous client."""
