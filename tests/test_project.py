"""What holds for the project as a whole: locks, scripts, vendored files, who imports whom."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs_version

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "app" / "static" / "vendor"
LOCKS = ["requirements.txt", "requirements-dev.txt", "requirements-node.txt", "package-lock.json", ".npmrc"]
SCRIPTS = ["serve", "test", ".ci/run", "scripts/lock", "scripts/find-python"]


def imports(path: Path) -> set[str]:
    """The top-level modules that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("engine" if node.level else (node.module or "").partition(".")[0])
    return found


def page_files() -> Iterator[Path]:
    """The templates and static files that we wrote ourselves."""
    for folder in (ROOT / "app" / "templates", ROOT / "app" / "static"):
        for path in folder.rglob("*"):
            if path.suffix in {".html", ".css", ".js", ".svg"} and VENDOR not in path.parents:
                yield path


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_no_host(name: str) -> None:
    assert "://" not in (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt", "requirements-node.txt"])
def test_every_locked_package_has_a_hash(name: str) -> None:
    packages = re.split(r"\n(?=[a-z])", (ROOT / name).read_text(encoding="utf-8").strip())
    assert [package for package in packages if "--hash=sha256:" not in package or "==" not in package] == []


def test_dev_holds_the_runtime_packages_at_the_same_versions() -> None:
    runtime, dev = (
        set(re.findall(r"^[a-z].*==\S+", (ROOT / name).read_text(encoding="utf-8"), re.M))
        for name in ("requirements.txt", "requirements-dev.txt")
    )
    assert runtime <= dev


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_executable(name: str) -> None:
    assert os.access(ROOT / name, os.X_OK)


def test_ci_runs_the_tests_and_nothing_else() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert lines == ["#!/bin/bash", 'exec "$(dirname "$0")/../test"']


def test_an_old_python_is_told_so_in_one_line(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2\n')
    old.chmod(0o755)
    command = ["/bin/sh", str(ROOT / "scripts" / "find-python")]
    run = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stdout == ""
    assert re.fullmatch(r"Poolscope needs Python 3\.11 or later; python3 is: Python 3\.9\.2\. .*\n", run.stderr)


def test_the_vendored_files_are_the_pinned_versions() -> None:
    pins = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert f'version="{pins["htmx.org"]}"' in (VENDOR / "htmx.js").read_text(encoding="utf-8")
    assert f'version="{pins["plotly.js"]}"' in (VENDOR / "plotly.js").read_text(encoding="utf-8")
    for name in ("swagger-ui.js", "swagger-ui.css"):
        text = (VENDOR / name).read_text(encoding="utf-8")
        assert text.startswith(f"/*! swagger-ui-dist {pins['swagger-ui-dist']}; ")
        assert "sourceMappingURL=swagger" not in text
    licences = (VENDOR / "LICENSES.txt").read_text(encoding="utf-8")
    assert [name for name, version in pins.items() if f"{name} {version} (" not in licences] == []


def test_python_and_the_page_have_the_same_plotly() -> None:
    pins = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert get_plotlyjs_version() == pins["plotly.js"]


def test_the_page_loads_nothing_from_another_host() -> None:
    elsewhere = re.compile(
        r"""\b(?:src|srcset|href|action|hx-[\w:-]+)\s*=\s*["']?\s*(?:[a-z]+:)?//  # an attribute
        | (?:url\(|@import|\bfrom|\bimport\(?|\bfetch\()\s*["']?\s*(?:[a-z]+:)?//[^*\s]  # CSS and modules""",
        re.X | re.I,
    )
    found = [(path.name, match[0]) for path in page_files() for match in elsewhere.finditer(path.read_text("utf-8"))]
    assert found == []


@pytest.mark.parametrize("path", sorted((ROOT / "engine").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_engine_imports_only_the_standard_library_its_hashes_and_itself(path: Path) -> None:
    standard = sys.stdlib_module_names | {"_typeshed"}  # which type checkers have
    assert imports(path) - standard <= {"engine", "cbor2", "xxhash"}


def test_all_that_the_image_copies_is_there_and_let_through() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = {source for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.M) for source in line.split()}
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line[:1] == "!"}
    assert {source for source in copied if not (ROOT / source).exists()} == set()
    assert copied == let_through
