"""The page's own files, made to stand in one HTML file that works without a server."""

from __future__ import annotations

import base64
import hashlib
import json
import posixpath
import re
from functools import cache, partial
from typing import Final

from markupsafe import Markup

from app.contexts import Inlined
from app.templating import STATIC

STYLES: Final = (
    "tokens",
    "app",
    "requests",
    "call",
    "narrow",
    "time",
    "branches",
    "sheet",
    "tour",
    "downloads",
    "recording",
)
LIBRARIES: Final = ("vendor/htmx.js", "vendor/plotly.js")
ENTRY: Final = "recording.js"
IMPORT: Final = re.compile(r'(\b(?:from |import |import\())"(\.{1,2}/[^"]+)"')
ENDS_ELEMENT: Final = re.compile(r"</(?:script|style)|<!--", re.I)


@cache
def inlined() -> Inlined:
    """All of it, read once."""
    early, libraries = _text("theme-early.js"), [_text(name) for name in LIBRARIES]
    modules = json.dumps({"imports": {name_of(path): _data_url("text/javascript", text) for path, text in _modules()}})
    start = f"import {json.dumps(name_of(ENTRY))};"
    hashes = " ".join(_hash(script) for script in (early, *libraries, modules, start))
    policy = (
        f"default-src 'none'; script-src {hashes} data:; style-src 'unsafe-inline'; img-src data: blob:; "
        "connect-src data:; base-uri 'none'; form-action 'none'"
    )
    return Inlined(
        policy=policy,
        styles=_as_it_is("\n".join(_text(f"{name}.css") for name in STYLES)),
        early=_as_it_is(early),
        libraries=tuple(map(_as_it_is, libraries)),
        modules=_as_it_is(modules),
        start=_as_it_is(start),
        icon=_data_url("image/svg+xml", _text("icon.svg")),
        licences=_as_it_is(_text("vendor/LICENSES.txt")),
    )


def name_of(path: str) -> str:
    """The name under which a module is imported."""
    return f"poolscope/{path}"


def _modules() -> list[tuple[str, str]]:
    """Every module that the entry leads to, with names in the place of relative addresses."""
    found: dict[str, str] = {}
    left = [ENTRY]
    while left:
        path = left.pop()
        if path not in found:
            text = _text(path)
            left += [_target(path, address) for _, address in IMPORT.findall(text)]
            found[path] = IMPORT.sub(partial(_named, path), text)
    return sorted(found.items())


def _target(path: str, address: str) -> str:
    """The module to which a relative address in another one leads."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), address))


def _named(path: str, found: re.Match[str]) -> str:
    """An import under a name."""
    return f'{found[1]}"{name_of(_target(path, found[2]))}"'


def _text(path: str) -> str:
    return (STATIC / path).read_text(encoding="utf-8")


def _as_it_is(text: str) -> Markup:
    """A file of ours as the text of an element: none of them may end it."""
    assert not ENDS_ELEMENT.search(text), ENDS_ELEMENT.search(text)
    return Markup(text)


def _data_url(kind: str, text: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
