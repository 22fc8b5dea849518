"""Events over gRPC. Needs the extra: `pip install tip-client[grpc]`."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import grpc

from tip_client._proto.trading_pb2 import TradingEvent
from tip_client.errors import ConnectionFailed
from tip_client.events import LogPosition
from tip_client.rpc_messages import METHOD, OPTIONS, failure_of, message_of, subscription
from tip_client.settings import Settings
from tip_client.token_turns import ready_in_thread


class AsyncRpcSource:
    """A call to the event stream, begun when something is to be received."""

    def __init__(self, settings: Settings, account_id: str, types: tuple[str, ...]) -> None:
        self._settings, self._account_id, self._types = settings, account_id, types
        self._channel: grpc.aio.Channel | None = None
        self._call: Any = None
        self.is_open = False
        """Whether a message has come on this call: before that nobody knows."""

    async def receive(self, after: LogPosition | None) -> Mapping[str, Any]:
        """The next message; the first of a call is the one after this position."""
        try:
            if self._call is None:
                await ready_in_thread(self._settings.token)
                self._begin(after)
            message = message_of(await anext(self._messages))
            self.is_open = True
            return message
        except StopAsyncIteration:
            raise ConnectionFailed("The stream ended.", was_sent=True) from None
        except grpc.RpcError as error:
            raise failure_of(error) from None

    async def aclose(self) -> None:
        """End the call and its channel; the next message is received on new ones."""
        channel, self._channel, self._call = self._channel, None, None
        self.is_open = False
        if channel is not None:
            await channel.close()

    def _begin(self, after: LogPosition | None) -> None:
        self._channel = self._opened()
        subscribe: Any = self._channel.unary_stream(
            METHOD,
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=TradingEvent.FromString,
        )
        request = subscription(self._account_id, self._types, after)
        self._call = subscribe(request, metadata=tuple(self._settings.headers().items()))
        self._messages: AsyncIterator[TradingEvent] = aiter(self._call)

    def _opened(self) -> grpc.aio.Channel:
        target, ca = self._settings.grpc_target, self._settings.ca
        if not self._settings.is_secure:
            return grpc.aio.insecure_channel(target, options=OPTIONS)
        roots = None
        if ca is not None:
            with open(ca, "rb") as file:
                roots = file.read()
        return grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(roots), options=OPTIONS)
