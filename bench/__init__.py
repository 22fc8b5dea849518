"""Every figure we claim, one command each: `make bench NAME=validate`."""
