"""Names of downloads, made from a title that may hold anything."""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from urllib.parse import quote

LONGEST: Final = 60
"""Characters of the title that are kept; each takes at most four bytes."""
FALLBACK: Final = "poolscope"


def file_name(title: str, what: str) -> str:
    """As "One-call-traced-scenario.json" for `what` "scenario.json": letters and digits of any script, and hyphens."""
    kept = "".join(letter if unicodedata.category(letter)[0] in "LMN" else "-" for letter in title)
    stem = re.sub("-+", "-", kept)[:LONGEST].strip("-") or FALLBACK
    return f"{stem}-{what}"


def attachment(name: str) -> str:
    """The value of Content-Disposition for a file to be saved under this name."""
    plain = re.sub("-+", "-", re.sub(r"[^A-Za-z0-9._-]", "-", name)).strip("-.") or FALLBACK
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
