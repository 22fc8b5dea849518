"""A paper broker that speaks Alpaca's trading API."""
