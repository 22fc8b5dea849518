"""The owner of a FIX session: FIX 4.4 towards the broker, Alpaca's trading API towards executor and reconciler."""
