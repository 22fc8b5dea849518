"""What every service of the platform runs on, and nothing of what it does."""
