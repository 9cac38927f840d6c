"""Starting the web server: its socket first, so that a port in use is told in one line; its address once it listens."""

from __future__ import annotations

import socket

import uvicorn

from app.main import create_app
from app.settings import Settings

HEAD_SIZE = 131_072
"""Bytes of a request line with its headers: a permalink stands in the address."""

EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}


class Server(uvicorn.Server):
    """Says where it is once it listens."""

    address = ""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as usual, then print the address."""
        await super().startup(sockets)
        if self.started:
            print(f"Poolscope is at {self.address}", flush=True)


def serve(settings: Settings) -> None:
    """Serve until a signal stops it.

    Raises:
        OSError: it can't listen there; the message says where and why.
        StoreError: the database can't be opened.
    """
    with listen(settings.host, settings.port) as listener:
        config = uvicorn.Config(
            create_app(settings),
            log_level="warning",
            access_log=False,
            server_header=False,
            h11_max_incomplete_event_size=HEAD_SIZE,
            timeout_graceful_shutdown=settings.graceful_shutdown,
        )
        server = Server(config)
        server.address = settings.public_url or address_of(settings.host, listener.getsockname()[1])
        server.run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound; port 0 takes any free one.

    Raises:
        OSError: it can't be had.
    """
    try:
        (family, kind, protocol, _, address), *_ = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(2048)
        except OSError:
            listener.close()
            raise
    except (OSError, UnicodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise OSError(f"cannot listen on {host}:{port}: {reason}") from None
    return listener


def address_of(host: str, port: int) -> str:
    """The address to open in a browser."""
    name = EVERYWHERE.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{name}:{port}/"
