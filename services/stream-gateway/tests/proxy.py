"""A TCP proxy that fails on command.

Cut (reset), freeze (half-open: both ends still think it is there), refuse, or be silent for a time like a server that
hangs.
"""

import asyncio
import socket
import struct
from typing import Self


class Proxy:
    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._frozen: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._refusing = False
        self.received = bytearray()
        """Everything that clients have sent."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        return self

    @property
    def target(self) -> str:
        assert self._server
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            if self._refusing:
                raise ConnectionRefusedError
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            self._open.discard(writer)
            writer.transport.abort()
            return
        self._open.add(there_writer)
        for source, sink in ((reader, there_writer), (there_reader, writer)):
            task = asyncio.ensure_future(self._forward(source, sink, reader, {writer, there_writer}))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _forward(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        client: asyncio.StreamReader,
        pair: set[asyncio.StreamWriter],
    ) -> None:
        try:
            while data := await source.read(65_536):
                await self._flowing.wait()
                self.received += data if source is client else b""
                if not pair & self._frozen:
                    sink.write(data)
                    await sink.drain()
        except OSError:
            pass
        finally:
            if not pair & self._frozen:
                for writer in pair:
                    writer.close()
                self._open -= pair

    def cut(self) -> None:
        """Reset every connection."""
        for writer in list(self._open - self._frozen):
            connection = writer.get_extra_info("socket")
            if connection is not None and connection.fileno() >= 0:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    def refuse(self) -> None:
        """Nobody is there, until `resume`."""
        self._refusing = True
        self.cut()

    def silence(self) -> None:
        """Connections stand and can be made, but nobody answers, until `resume`."""
        self._flowing.clear()

    def resume(self) -> None:
        self._refusing = False
        self._flowing.set()

    def freeze(self) -> None:
        """From now on nothing passes over the connections there are; new ones work."""
        self._frozen |= self._open

    async def __aexit__(self, *_: object) -> None:
        if self._server:
            self._server.close()
        for writer in self._open | self._frozen:
            writer.transport.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0.05)  # the sockets are closed by the loop, one turn later
