"""What an account may not do: symbol controls, trading windows, switches and limits."""
