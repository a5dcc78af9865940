"""What a recording holds: samples with their registers, and the files that were mapped."""

import re
import subprocess
from dataclasses import dataclass

REGISTERS = "ax bx cx dx si di bp sp ip flags r8 r9 r10 r11 r12 r13 r14 r15".split()
# Samples of user code by the CPU clock; the rate gives 20,000 in ten seconds of one thread.
RATE_HZ = 2000
# Of each stack, what `dataspace` keeps of it; perf reads it back for call chains, which are not asked for.
STACK_BYTES = 256


def record(path, command):
    """Records `command` with this system's perf; its registers are those at each reported IP."""
    perf = ["perf", "record", "-q", "-N", "-e", "cpu-clock:u", "-F", str(RATE_HZ)]
    perf += ["--intr-regs=" + ",".join(REGISTERS), "--user-regs=" + ",".join(REGISTERS)]
    perf += ["--call-graph", f"dwarf,{STACK_BYTES}"]
    subprocess.run([*perf, "-o", path, "--", *command], check=True, stdout=subprocess.DEVNULL)


@dataclass(frozen=True)
class Sample:
    """One sample, by the peer's own reader (perf script)."""

    time_ns: int
    tid: int
    ip: int
    registers: dict
    path: str  # of the load object
    file_offset: int  # of the IP in it


def _mappings(path):
    """By process: (start, end, offset in the file, path, time), in the order they came."""
    pattern = re.compile(
        r"(\d+\.\d+): PERF_RECORD_MMAP2? (-?\d+)/.*\[(0x[0-9a-f]+)\((0x[0-9a-f]+)\) @ (\w+) "
        r".*?\]: (\S+) (.*)$"
    )
    listing = subprocess.run(
        ["perf", "script", "-G", "-i", path, "--ns", "--show-mmap-events", "-F", "comm,pid,tid,time"],
        check=True, capture_output=True, text=True, errors="replace",
    ).stdout
    found = {}
    for line in listing.splitlines():
        match = pattern.search(line) if "PERF_RECORD_MMAP" in line else None
        if match and "x" in match[6]:
            start = int(match[3], 16)
            entry = (start, start + int(match[4], 16), int(match[5], 0), match[7], _ns(match[1]))
            found.setdefault(int(match[2]), []).append(entry)
    return found


def _ns(seconds):
    whole, fraction = seconds.split(".")
    return int(whole) * 10**9 + int(fraction.ljust(9, "0"))


def samples(path, fields="pid,tid,time,ip,iregs"):
    """All samples whose IP lies in a mapped file, in time order, and how many there are in all."""
    mappings = _mappings(path)
    listing = subprocess.Popen(
        ["perf", "script", "-G", "-i", path, "--ns", "-F", fields],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    found, total = [], 0
    for line in listing.stdout:
        words = line.split()
        if len(words) < 3:
            continue
        total += 1
        pid, tid = (int(word) for word in words[0].split("/"))
        time_ns, ip = _ns(words[1].rstrip(":")), int(words[2], 16)
        registers = dict(word.split(":") for word in words[3:] if ":0x" in word)
        registers = {name.lower(): int(value, 16) for name, value in registers.items()}
        for start, end, offset, file, mapped_ns in reversed(mappings.get(pid, [])):
            if start <= ip < end and mapped_ns <= time_ns:
                if file.startswith("/"):
                    found.append(Sample(time_ns, tid, ip, registers, file, ip - start + offset))
                break
    if listing.wait() != 0:
        raise SystemExit(f"perf script cannot read {path}")
    return found, total
