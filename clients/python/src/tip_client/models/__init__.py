"""What the API answers, as frozen records: one module per noun."""
