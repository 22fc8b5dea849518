"""The decisions of execution: what a command, a verdict or a report makes of an intent. No database and no broker."""
