"""The stream gateway: the accounts' durable logs, delivered to whoever subscribes."""
