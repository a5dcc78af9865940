#!/usr/bin/env python3
"""Makes a program with a gigabyte of debug information, records it, and tells what naming its samples costs.

    benches/large.py DIR [--units 400] [--dataspace target/release/dataspace]

One unit is compiled, with thousands of types; the others are its assembly with names of their own. The program is made
once, in about a minute on two cores. Records with this system's perf.
"""

import argparse
import concurrent.futures
import os
import resource
import subprocess
import sys
import time

# In the source of all units, for the number of one.
MARK = "uMARK"
TYPES_A_UNIT = 5_000
MEMBERS = 12
REGISTERS = "ax,bx,cx,dx,si,di,bp,sp,ip,flags,r8,r9,r10,r11,r12,r13,r14,r15"

MAIN = """
#include <cstdio>
#include <cstdlib>
struct Cell { Cell *next; long payload[7]; };
%(declarations)s
static long (*const units[])(long) = { %(names)s };
int main(int argc, char **argv) {
    long n_rounds = argc > 1 ? atol(argv[1]) : 300, sum = 0;
    for (long round = 0; round < n_rounds; round++)
        for (unsigned unit = 0; unit < sizeof units / sizeof *units; unit += 7)
            sum += units[unit](round);
    printf("%%ld\\n", sum);
}
"""


def source():
    """A unit: types that nest, functions that touch them, a loop over all of them."""
    lines = [f"namespace {MARK} {{", "struct Base { long first; Base *next; };"]
    for number in range(TYPES_A_UNIT):
        name = f"{MARK}Record{number}"
        members = "".join(f" int {MARK}f{number}_{i};" if i % 3 else f" Base *{MARK}l{number}_{i};" for i in range(MEMBERS))
        nested = f" {MARK}Record{number - 1} *before;" if number else ""
        method = f" int sum(int by) const {{ return {MARK}f{number}_1 * by; }}"
        lines.append(f"struct {name} : Base {{{members}{nested}{method} }};")
        if number % 10 == 0:
            lines.append(f"static {name} kept_{number}[8];")
            lines.append(f"__attribute__((noinline)) static long run_{number}({name} *at, long round) {{ "
                         f"at->{MARK}f{number}_2 += round; return at->sum(3) + at->{MARK}f{number}_2; }}")
    lines.append("long all(long round) { long sum = 0;")
    lines += [f"sum += run_{number}(&kept_{number}[round & 7], round);" for number in range(0, TYPES_A_UNIT, 10)]
    lines += ["return sum; }", "}", f"long {MARK}_all(long round) {{ return {MARK}::all(round); }}"]
    return "\n".join(lines)


def token(unit):
    """What stands for `MARK` in a unit: as long, for names in symbols are counted."""
    return f"u{unit:04}"


def assemble(folder, unit, assembly):
    """The object of a unit: the one that was compiled, with names of its own."""
    path = f"{folder}/{token(unit)}.o"
    subprocess.run(["as", "-o", path, "-"], input=assembly.replace(MARK.encode(), token(unit).encode()), check=True)
    return path


def build(folder, n_units, flags):
    """The program, linked of all units."""
    program = f"{folder}/large"
    if os.path.exists(program):
        return program
    os.makedirs(folder, exist_ok=True)
    compiled = subprocess.run(["g++", "-O1", "-g", "-S", "-x", "c++", "-", "-o", "-"],
                              input=source().encode(), check=True, capture_output=True).stdout
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda unit: assemble(folder, unit, compiled), range(n_units)))
    names = [f"{token(unit)}_all" for unit in range(n_units)]
    with open(f"{folder}/main.cc", "w", encoding="ascii") as file:
        file.write(MAIN % {"declarations": "\n".join(f"long {name}(long);" for name in names), "names": ", ".join(names)})
    subprocess.run(["g++", "-O1", "-g", f"{folder}/main.cc", *objects, *flags, "-o", program], check=True)
    for path in objects:
        os.unlink(path)
    return program


def run(command):
    """Seconds of CPU and by the clock, and MB of peak memory."""
    start = time.monotonic()
    with open(os.devnull, "w", encoding="ascii") as null:
        process = subprocess.Popen(command, stdout=null)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command}: {status}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - start, usage.ru_maxrss / 1024


def first_answer(command):
    """Seconds until the first line with an object."""
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if '"object":"' in line:
                process.kill()
                return time.monotonic() - start
    return None


def main():
    """What was typed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir")
    parser.add_argument("--units", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=20000)
    parser.add_argument("--link", action="append", default=[], help="option for the link, as -Wl,--compress-debug-sections=zlib")
    parser.add_argument("--dataspace", default="target/release/dataspace")
    options = parser.parse_args()
    program = build(os.path.abspath(options.dir), options.units, options.link)
    recording = f"{program}.data"
    if not os.path.exists(recording):
        subprocess.run(["perf", "record", "-q", "-N", "-e", "cpu-clock:u", "-F", "2000", f"--intr-regs={REGISTERS}",
                        f"--user-regs={REGISTERS}", "-o", recording, "--", program, str(options.rounds)], check=True)
    print(f"{os.path.getsize(program) / 1e6:.0f} MB, recording {os.path.getsize(recording) / 1e6:.1f} MB")
    for what in ["script", "report"]:
        cpu_s, wall_s, peak_mb = run([options.dataspace, what, "-i", recording])
        print(f"{what}: {cpu_s:.2f} s CPU, {wall_s:.2f} s, {peak_mb:.0f} MB at most")
    first_s = first_answer([options.dataspace, "script", "-i", recording])
    print("first answer: " + ("never" if first_s is None else f"{first_s:.2f} s"))


if __name__ == "__main__":
    main()
