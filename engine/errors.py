"""What can be wrong with what somebody typed, as one tree.

::

    EngineError                 everything the engine raises on purpose
    ├── PoolExhaustedError      more blocks were asked for than are free, though the count said that they fit (7.15)
    └── InputError              something the user wrote; says what, where and what would be right
        ├── ScenarioError       malformed JSON or a malformed scenario; known before anything runs
        ├── ConfigError         a config that the engine rejects at start, or for which nothing is defined (0.3)
        ├── RequestError        shows only while running: a live id used again, `continue` of an id never added
        └── LimitError          well formed, but over a limit of this program

A message never holds a line break and never more than a short piece of what was typed.
"""

from typing import Final

SHOWN_CHARACTERS: Final = 60
"""The longest echo of a value in a message, in characters."""


class EngineError(Exception):
    """Base of everything the engine raises on purpose."""


class PoolExhaustedError(EngineError):
    """More blocks were asked for than are free; nothing was taken (1.5)."""


class InputError(EngineError):
    """Something the user wrote is wrong.

    Attributes:
        code: a stable word for programs, such as `wrong_type` or `prompt_too_long`.
        message: what is wrong, without the place.
        where: the place, such as `actions[3].prompt[0].tokens` or `line 3, column 7`; may be "".
        expected: what would be right; may be "".
    """

    def __init__(self, code: str, message: str, where: str = "", expected: str = "") -> None:
        super().__init__(code, message, where, expected)
        self.code = code
        self.message = message
        self.where = where
        self.expected = expected

    def __str__(self) -> str:
        """One line: place, what is wrong, what would be right."""
        line = f"{self.where}: {self.message}" if self.where else self.message
        return f"{line}; expected {self.expected}" if self.expected else line


class ScenarioError(InputError):
    """Malformed JSON or a malformed scenario, found before anything runs."""


class ConfigError(InputError):
    """A config that the engine rejects at start, or for which nothing is defined (0.3)."""


class RequestError(InputError):
    """An action that turns out impossible at the moment when it runs (0.3)."""


class LimitError(InputError):
    """Well formed, but more than this program takes."""


def shown(value: object) -> str:
    """A JSON value as a message echoes it: one printable line of at most about 60 characters."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value.bit_length() <= 128 else f"a number of about {value.bit_length() * 3 // 10} digits"
    if isinstance(value, str):
        return f'"{printable(value)}"'
    if isinstance(value, dict):
        return "an object" if value else "an empty object"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}" if value else "an empty list"
    return printable(repr(value))


def printable(text: str) -> str:
    """`text` on one line, shortened, with everything that doesn't print as an escape."""
    short = text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in short)
