"""Links to a moment: what the share dialog offers."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from app.contexts import ShareContext, WallContext
from app.rendering.downloads import files
from app.rendering.moment import Moment
from app.rendering.transport import view
from app.services.public_url import PublicUrl
from app.services.qr import qr_code

LONG: Final = 2_000
"""Characters that every program takes."""


def share(
    moment: Moment, root: PublicUrl, code: str, key: str | None, select: str, *, whole_page: bool, error: str = ""
) -> ShareContext:
    """The links to a moment.

    Args:
        moment: what is shared.
        root: what every link starts with.
        code: the permalink's; "" if the scenario is too large for one.
        key: the short link's, if there is one.
        select: what is selected.
        whole_page: whether it is a page of its own.
        error: what went wrong.
    """
    permalink = root.link(f"p/{code}/") if code else ""
    short = root.link(f"l/{key}") if key else ""
    session = root.link(f"s/{moment.session_id}{moment.query(moment.at)}") if moment.session_id else ""
    if session and select:
        session += f"&sel={quote(select, safe=':')}"
    picture = qr_code(short or permalink)
    return ShareContext(
        view=view(moment),
        permalink=permalink,
        is_long=len(permalink) > LONG,
        short=short,
        session=session,
        embed=root.link(f"embed/p/{code}/") if code else "",
        qr_path=picture.path or "",
        qr_size=picture.size,
        qr_reason=picture.reason,
        loopback=root.is_loopback,
        select=select,
        files=files(len(moment.actions)),
        whole_page=whole_page,
        error=error,
    )


def wall(title: str, root: PublicUrl, code: str, key: str | None) -> WallContext:
    """The short link, or else the permalink, as a large QR code."""
    url = root.link(f"l/{key}" if key else f"p/{code}/")
    picture = qr_code(url)
    return WallContext(title, url, picture.path or "", picture.size, picture.reason, root.is_loopback)
