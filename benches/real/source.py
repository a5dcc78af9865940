"""Source lines and names of instructions, by binutils."""

import bisect
import re
import subprocess
from functools import lru_cache


def lines(path, addresses):
    """For each address the function and the file:line, innermost inlined call first."""
    if not addresses:
        return {}
    command = ["addr2line", "-a", "-i", "-f", "-C", "-e", path, *(hex(a) for a in addresses)]
    listing = subprocess.run(command, check=True, capture_output=True, text=True,
                             errors="replace").stdout.splitlines()
    found, current = {}, None
    for line in listing:
        if line.startswith("0x") and " " not in line:
            current = found.setdefault(int(line, 16), [])
        else:
            current.append(line)
    return {a: list(zip(texts[0::2], texts[1::2])) for a, texts in found.items()}


@lru_cache(maxsize=None)
def _symbols(path):
    listing = subprocess.run(["nm", "-n", path], check=True, capture_output=True, text=True,
                             errors="replace").stdout
    rows = (line.split(maxsplit=2) for line in listing.splitlines())
    return sorted((int(r[0], 16), r[2]) for r in rows if len(r) == 3 and r[1] in "tTwWiu")


def symbol(path, address):
    """The start and the name of the function around `address`."""
    symbols = _symbols(path)
    index = bisect.bisect_right(symbols, (address, "\x7f")) - 1
    return symbols[index] if index >= 0 else (address, "?")


@lru_cache(maxsize=None)
def _file(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return None


def in_crate(place):
    """A place without the folder where cargo, or rustc's build, has its sources."""
    return re.sub(r"^.*/(?:registry/src/[^/]*|rustc/[0-9a-f]+)/", "", place)


def around(place, margin):
    """The source text around `FILE:LINE`, its line marked; what is said where there is none."""
    place = place.split(" (discriminator")[0]
    path, _, line = place.rpartition(":")
    text = _file(path) if line.isdigit() else None
    if text is None:
        return ["(no source)"]
    number = int(line)
    span = range(max(1, number - margin), min(len(text), number + margin) + 1)
    return [f"{'>' if n == number else ' '} {n:6} {text[n - 1]}" for n in span]
