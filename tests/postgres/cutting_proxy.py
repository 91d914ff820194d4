"""A stretch of network between client and server that can be cut, before or after a commit arrives."""

from __future__ import annotations

import ctypes
import selectors
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from postgres_server import Server

SOCKET = ".s.PGSQL.5432"
ATTACH_FILTER = 26
"""Linux's SO_ATTACH_FILTER, which Python has no name for."""


class Proxy:
    """Passes bytes on. `cut` says what the next request with `at` in it meets, and when.

    "before" or "after" it arrived the connection ends; with `silent` it doesn't: the client gets no
    packet any more, not even an acknowledgement, and nobody tells the server either.
    """

    def __init__(self, listening: socket.socket, server: Server) -> None:
        self._server = server.socket / SOCKET
        self._listening = listening
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._through = threading.Event()
        self._through.set()
        self.at = b"COMMIT"
        self.silent = False
        self.cut: str | None = None
        self.cuts = 0
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def block(self) -> None:
        """Let nobody connect."""
        self._through.clear()

    def unblock(self) -> None:
        """Let everybody connect again."""
        self._through.set()

    def _accept(self) -> None:
        self._listening.settimeout(0.05)
        while not self._ended.is_set():
            try:
                client, _ = self._listening.accept()
            except TimeoutError:
                continue
            client.setblocking(True)
            if not self._through.is_set():
                client.close()
                continue
            thread = threading.Thread(target=self._pass, args=(client,))
            thread.start()
            self._threads.append(thread)

    def _pass(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, selectors.DefaultSelector() as both:
            server.connect(str(self._server))
            both.register(client, selectors.EVENT_READ, server)
            both.register(server, selectors.EVENT_READ, client)
            while not self._ended.is_set():
                for key, _ in both.select(0.05):
                    source, target = key.fileobj, key.data
                    assert isinstance(source, socket.socket)
                    data = _received(source)
                    if not data:
                        return
                    if source is client and self._is_cut(data, server):
                        if self.silent:
                            drop_packets(client)
                            self._ended.wait()
                        return
                    target.sendall(data)

    def _is_cut(self, data: bytes, server: socket.socket) -> bool:
        if self.cut is None or self.at not in data:
            return False
        if self.cut == "after":
            server.sendall(data)
            server.recv(1)  # the answer has begun: it is committed
        self.cut = None
        self.cuts += 1
        return True

    def close(self) -> None:
        self._ended.set()
        self._accepting.join()
        for thread in self._threads:
            thread.join()
        self._listening.close()


def _received(source: socket.socket) -> bytes:
    try:
        return source.recv(1 << 16)
    except ConnectionResetError:
        return b""


def drop_packets(client: socket.socket) -> None:
    """Let nothing that arrives reach a socket, as if the network were gone."""
    nothing = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # "return 0"
    program = struct.pack("HL", 1, ctypes.addressof(nothing))
    client.setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, program)


@contextmanager
def proxy_over_tcp(server: Server, url: str) -> Iterator[tuple[Proxy, str]]:
    """Give a proxy and the URL of the same database through it."""
    listening = socket.create_server(("127.0.0.1", 0))
    proxy = Proxy(listening, server)
    host, port = listening.getsockname()
    try:
        yield proxy, url.replace("@/", f"@{host}:{port}/").partition("?")[0]
    finally:
        proxy.close()


@contextmanager
def proxy_before(server: Server, url: str, folder: Path) -> Iterator[tuple[Proxy, str]]:
    """Give a proxy and the URL of the same database through it."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(folder / SOCKET))
    listening.listen()
    proxy = Proxy(listening, server)
    try:
        yield proxy, url.replace(f"host={server.socket}", f"host={quote(str(folder))}")
    finally:
        proxy.close()
