"""A file's bytes as the text of a scenario; what is no text is refused in a sentence that says what it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.services.json_help import SCENARIO
from engine.errors import ScenarioError, shown

BOM: Final = b"\xef\xbb\xbf"
COMPRESSED: Final = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
"""How compressed files start."""
OTHER_TEXT: Final = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\x00\x00\xfe\xff": "UTF-32"}


@dataclass(frozen=True, slots=True)
class Upload:
    """The text of a file, its lines ended by line feeds; `note`: what was changed in it."""

    text: str
    note: str = ""


def read_upload(data: bytes, name: str = "") -> Upload:
    """The text of a file.

    Args:
        data: the file's bytes.
        name: what the file is called, for messages; "" for what was pasted.

    Raises:
        ScenarioError: it is empty, compressed, or no text in UTF-8.
    """
    it = shown(name) if name else "this"
    if not data.strip():
        raise _refused(f"{it} is empty" if name else "there is nothing here", SCENARIO)
    for start, kind in COMPRESSED.items():
        if data.startswith(start):
            raise _refused(f"{it} is compressed ({kind})", "the JSON file that is inside")
    for start, kind in OTHER_TEXT.items():
        if data.startswith(start):
            raise _refused(f"{it} is text in {kind}", "the same saved as UTF-8")
    note = "A byte order mark at its start was left out." if data.startswith(BOM) else ""
    try:
        text = data.removeprefix(BOM).decode()
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        byte = error.start + (len(BOM) if note else 0)
        message = f"{it} is not text in UTF-8: byte {byte}, in line {line}, can't be read"
        raise _refused(message, "JSON saved as UTF-8") from None
    return Upload(in_lines(text), note)


def in_lines(text: str) -> str:
    """The same with line feeds at the ends of its lines, as the page has them."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _refused(message: str, expected: str) -> ScenarioError:
    return ScenarioError("malformed_file", message, "file", expected)
