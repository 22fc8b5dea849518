"""The asynchronous client. `tip_client._sync` is made from it: `make client`."""
