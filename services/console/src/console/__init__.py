"""The web console: pages for people, on the public API and with no rights of its own."""
