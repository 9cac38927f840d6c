"""Short links: a key of eight characters for a permalink that the server keeps. One permalink has one key."""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

from app.services.errors import BadValueError, FullError, UnavailableError
from app.services.stored import ALPHABET
from app.store import StaleError, Store, StoreError

KEY_LENGTH: Final = 8
MAX_CODE: Final = 100_000
"""The longest code that is kept, in characters; a longer one holds a scenario of about a megabyte."""
TRIES: Final = 5


def known_key(store: Store, code: str) -> str | None:
    """The key of a permalink's code, if it has one."""
    return store.key_of(_sha256(code))


def shorten(store: Store, code: str, most: int) -> str:
    """The key of a permalink's code; it is made where there is none.

    Args:
        store: where it is kept.
        code: what stands behind `/p/`.
        most: how many links there may be.

    Raises:
        BadValueError: the code is too long.
        FullError: there are as many as there may be.
        UnavailableError: it can't be stored.
    """
    if len(code) > MAX_CODE:
        message = f"This link has {len(code)} characters, too many to be kept."
        raise BadValueError(message, "link", f"at most {MAX_CODE}; a download holds more")
    for _ in range(TRIES):
        if (key := known_key(store, code)) is not None:
            return key
        if store.count_links() >= most:
            raise FullError("This server keeps as many short links as it may. The permalink works without it.")
        key = "".join(secrets.choice(ALPHABET) for _ in range(KEY_LENGTH))
        try:
            store.add_link(key, _sha256(code), code)
        except StaleError:  # somebody made it at the same time
            continue
        except StoreError as error:
            raise UnavailableError("The short link could not be stored.", "", "to try again") from error
        return key
    raise UnavailableError("The short link could not be stored.", "", "to try again")


def _sha256(code: str) -> bytes:
    return hashlib.sha256(code.encode()).digest()
