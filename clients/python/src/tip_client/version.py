"""The version of this package."""

__version__ = "0.1.0"
USER_AGENT = f"tip-client/{__version__}"
