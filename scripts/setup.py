"""Make this checkout ready to run: .venv with the locked packages, app/static/vendor/, Chromium for the tests.

`setup.py` prepares for ./serve, `setup.py --dev` for ./test. Needs only Python 3.11 or later. What is already in place
is left alone, so a second run takes no time; a lock lets several runs start together.
"""

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "installed.json"
CHROMIUM = ("/usr/bin/chromium-headless-shell", "/usr/bin/chromium")
"""The first is the same browser without windows: a test takes half the time in it."""


def main() -> int:
    """Prepare what the arguments ask for. Returns an exit code."""
    dev = "--dev" in sys.argv[1:]
    with (ROOT / ".setup.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another set-up to end ...", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        make_venv()
        # The dev file holds the runtime file at the same versions: whoever has dev has both.
        install(["requirements.txt", "requirements-dev.txt"] if dev else ["requirements.txt"])
        subprocess.run([PYTHON, ROOT / "scripts" / "build_vendor.py"], check=True)
        if dev:
            need_chromium()
    return 0


def make_venv() -> None:
    """Make .venv unless it is there and works with this Python."""
    ask = "import sys, pip; print(*sys.version_info[:2])"
    if PYTHON.exists():
        answer = subprocess.run([PYTHON, "-c", ask], capture_output=True, text=True, check=False).stdout
        if answer.split() == [str(part) for part in sys.version_info[:2]]:
            return
    if importlib.util.find_spec("ensurepip") is None:  # Debian keeps it in a package of its own
        apt_install(
            "python3-venv", otherwise="This Python can't make virtual environments: install Debian's python3-venv."
        )
    print("Making .venv ...", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True)


def install(files: list[str]) -> None:
    """Install the last of these requirements files, unless all of them are what is installed."""
    wanted = {name: hashlib.sha256((ROOT / name).read_bytes()).hexdigest() for name in files}
    installed = json.loads(STAMP.read_text()) if STAMP.exists() else {}
    if wanted.items() <= installed.items():
        return
    print(f"Installing {files[-1]} ...", flush=True)
    STAMP.unlink(missing_ok=True)
    pip: list[str | Path] = [
        PYTHON,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
    ]
    subprocess.run([*pip, "-r", ROOT / files[-1]], check=True)
    STAMP.write_text(json.dumps(wanted))


def need_chromium() -> None:
    """See that the browser tests have a browser: the one named in POOLSCOPE_CHROMIUM, or Debian's."""
    named = os.environ.get("POOLSCOPE_CHROMIUM")
    if named:
        if shutil.which(named) is None:
            raise SystemExit(f"POOLSCOPE_CHROMIUM names {named}, which is no program that can be run.")
    elif not any(Path(one).exists() for one in CHROMIUM):
        hint = f"The browser tests need Chromium: install {CHROMIUM[0]}, or name another in POOLSCOPE_CHROMIUM."
        apt_install("chromium-headless-shell", "fonts-dejavu-core", otherwise=hint)


def apt_install(*packages: str, otherwise: str) -> None:
    """Install Debian packages if we may; leave with a word of advice if not."""
    become = [] if os.geteuid() == 0 else ["sudo", "-n"]
    may = not become or (shutil.which("sudo") and subprocess.run(["sudo", "-n", "true"], check=False).returncode == 0)
    if not (may and shutil.which("apt-get")):
        raise SystemExit(otherwise)
    print(f"Installing {', '.join(packages)} ...", flush=True)
    apt = [*become, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        if subprocess.run([*apt, *arguments], stdout=subprocess.DEVNULL, check=False).returncode != 0:
            raise SystemExit(otherwise)


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"Set-up stopped, for this failed: {' '.join(map(str, error.cmd))}") from None
