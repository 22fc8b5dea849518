"""Who is calling: organizations, users, API keys, service accounts, entitlements."""
