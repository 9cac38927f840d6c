"""Under which address others reach this server: what links and QR codes start with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from app.settings import Settings

HOST: Final = re.compile(r"(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?\Z", re.I)


@dataclass(frozen=True, slots=True)
class PublicUrl:
    """The server's root, without a slash at its end."""

    root: str
    is_loopback: bool
    """Only this very machine gets there: a page that shows a link says so."""

    def link(self, path: str) -> str:
        """The absolute link to a path below the root, such as `p/CODE`."""
        return f"{self.root}/{path}"


def public_url(settings: Settings, asked_at: str) -> PublicUrl:
    """The address that was set, else the one that this request was sent to.

    Args:
        settings: `public_url` goes before.
        asked_at: the request's own root, as `str(request.base_url)`. Its host is what the client says, so one that is
            none gives way to the address that the server listens on.
    """
    if settings.public_url is not None:
        root = settings.public_url
    else:
        scheme, _, rest = asked_at.partition("://")
        known = scheme in ("http", "https") and HOST.match(rest.partition("/")[0])
        root = asked_at if known else f"http://{settings.host}:{settings.port}"
    return PublicUrl(root.rstrip("/"), is_loopback(urlsplit(root).hostname or ""))


def is_loopback(host: str) -> bool:
    """Whether a host's name or address means the machine that uses it."""
    try:
        address = ip_address(host)
    except ValueError:
        return host.rstrip(".") == "localhost" or host.rstrip(".").endswith(".localhost")
    return address.is_loopback or address.is_unspecified
