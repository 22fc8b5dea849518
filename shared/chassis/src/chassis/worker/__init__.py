"""What every worker process is built of: outages tolerated, periodic tasks, consumers, signals after a commit."""
