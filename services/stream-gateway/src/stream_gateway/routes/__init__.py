"""The same streams over two transports."""
