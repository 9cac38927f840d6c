"""Templates and static files: a declared context in, HTML out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from app.rendering.words import isolated

HERE: Final = Path(__file__).resolve().parent
STATIC: Final = HERE / "static"
FOREVER: Final = "public, max-age=31536000, immutable"


class Templates:
    """Renders a context class by the template of its kind. Everything is escaped, and an unknown name is an error."""

    def __init__(self, most_bytes: int) -> None:
        """`most_bytes`: of a file that may be sent; every page takes one that is dropped on it."""
        self.most_bytes = most_bytes
        self.version = static_version()
        self.environment = _environment()

    def render(self, name: str, context: Any, path: str = "/") -> str:  # noqa: ANN401 - any dataclass of app.contexts
        """The template with its context, `static` and `most_bytes`; `path` is the page's own, below the root."""
        values = {field.name: getattr(context, field.name) for field in fields(context)}
        return self.environment.get_template(name).render(values, static=self.static(path), most_bytes=self.most_bytes)

    def static(self, path: str) -> Callable[[str], str]:
        """The function `static` of a page: a relative URL that changes with the files."""
        return lambda file: f"{to_root(path)}static/{self.version}/{file}"


@cache
def _environment() -> Environment:
    """One a process: templates are compiled once, however many apps there are."""
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,  # every include would ask the disk
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["isolated"] = isolated
    return environment


def to_root(path: str) -> str:
    """The relative URL from a page to the server's root: "" for `/`, "../" for `/s/x`."""
    return "../" * (path.count("/") - 1)


@cache
def static_version() -> str:
    """A hash of every static file. It stands in the path, so that files import each other at one version."""
    digest = hashlib.sha256()
    for path in sorted(STATIC.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(STATIC).as_posix()}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]


class VersionedFiles(StaticFiles):
    """Serves `VERSION/PATH`: the present version for ever, what was asked for under another one only for now."""

    def __init__(self, version: str) -> None:
        super().__init__(directory=STATIC)
        self.version = version

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file, with how long it may be kept."""
        version, _, file = path.replace("\\", "/").partition("/")
        if not file or any(part.startswith(".") for part in file.split("/")):
            raise HTTPException(404)
        response = await super().get_response(file, scope)
        if isinstance(response, FileResponse) or response.status_code == 304:
            response.headers["cache-control"] = FOREVER if version == self.version else "no-cache"
        return response
