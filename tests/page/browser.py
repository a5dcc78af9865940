"""A browser of this machine, and a Python that drives it."""

import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
NEEDED = ["playwright==1.65.2", "axe-playwright-python==0.1.8"]
NOT_HERE = 77


def not_here(why):
    print(f"not run: {why}")
    sys.exit(NOT_HERE)


def python():
    """A Python with what is needed."""
    place = TARGET / "page"
    binary, made = place / "bin" / "python3", place / "made"
    wanted = "\n".join(NEEDED)
    if made.exists() and made.read_text() == wanted:
        return binary
    try:
        venv.create(place, with_pip=True, clear=True)
    except (OSError, subprocess.CalledProcessError) as error:
        not_here(f"no environment for Python can be made (python3-venv has it): {error}")
    pip = [binary, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *NEEDED]
    done = subprocess.run(pip, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["pip failed"]
        not_here(f"Playwright cannot be had: {last[0]}")
    made.write_text(wanted)
    return binary


def run(program, *args):
    """Runs a program of Python with these words and the browser's path; gives its exit code."""
    sys.stdout.reconfigure(line_buffering=True)
    chromium = next((path for path in ("/usr/bin/chromium", "/usr/bin/chromium-browser") if os.path.exists(path)), None)
    if chromium is None:
        not_here("chromium is not installed")
    return subprocess.run([python(), program, chromium, *args], check=False).returncode
