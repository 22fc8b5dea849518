"""Connections to Redis for the event loop."""

from redis.asyncio import BlockingConnectionPool, Redis

_PATIENCE_S = 1.0
_CONNECTIONS = 16


def connect(redis_url: str) -> Redis:
    """Connections of one use. Whoever finds all of them in use waits instead of being refused."""
    pool: BlockingConnectionPool = BlockingConnectionPool.from_url(
        redis_url,
        max_connections=_CONNECTIONS,
        timeout=_PATIENCE_S,
        socket_timeout=_PATIENCE_S,
        socket_connect_timeout=_PATIENCE_S,
    )
    return Redis(connection_pool=pool)
