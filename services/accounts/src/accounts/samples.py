"""Calls of the Python SDK, by operation, for the API document: see `chassis.openapi_samples`."""

CALLS = {
    "accounts_create_account": 'client.accounts.create("Momentum", broker="paper", environment="paper")',
    "accounts_list_accounts": "list(client.accounts.list())",
    "accounts_read_account": "client.accounts.read(account_id)",
    "accounts_change_account": 'client.accounts.change(account_id, name="Momentum 2")',
    "accounts_delete_account": "client.accounts.delete(account_id)",
    "accounts_add_credential": 'client.credentials.add("Main", {"key_id": key_id, "secret_key": secret_key})',
    "accounts_list_credentials": "list(client.credentials.list())",
    "accounts_read_credential": "client.credentials.read(credential_id)",
    "accounts_delete_credential": "client.credentials.delete(credential_id)",
    "accounts_rotate_secret": 'client.credentials.rotate(credential_id, {"key_id": key_id, "secret_key": secret_key})',
    "accounts_request_test": "client.credentials.test(credential_id)",
    "accounts_disable_account": 'client.accounts.disable(account_id, reason="Maintenance")',
    "accounts_enable_account": "client.accounts.enable(account_id)",
    "accounts_outbox_health": "client.accounts.outbox_health()",
    "outbox_list_failed_rows": "list(client.accounts.failed_outbox_rows(redriven=False))",
    "outbox_redrive_row": "client.accounts.redrive_outbox_row(17)",
    "accounts_list_brokers": "client.accounts.brokers()",
}
