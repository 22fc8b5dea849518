"""The messages of the stream, generated."""
