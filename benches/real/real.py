#!/usr/bin/env python3
"""Real programs: recorded, named by dataspace and by perf 7.2, compared, and what both cost."""

import argparse
import os
import sys

import compare
import cost
import recording
import wait

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = ["sqlite", "lua", "zstd", "rocksdb", "boa"]
# Those that are only looked at while they run: servers with a load, what comes as a package.
RUNNING = ["redis", "nginx", "python", "go", "lapack"]


def command(program, folder):
    """A workload of about fifteen seconds."""
    binary = f"{folder}/bin/{program}"
    programs = f"{HERE}/programs"
    arguments = {
        "sqlite": ["600"],
        "lua": [f"{programs}/work.lua", "1100"],
        "zstd": ["6"],
        "rocksdb": [f"{folder}/rocksdb.db", "2500"],
        "boa": [f"{programs}/work.js", "900"],
    }
    return [binary, *arguments[program.removesuffix("-clang")]]


def record(options):
    """Records what is not recorded yet."""
    os.makedirs(f"{options.dir}/data", exist_ok=True)
    for program in options.programs:
        path = data(options, program)
        if not os.path.exists(path) or options.again:
            recording.record(path, command(program, options.dir))
        print(f"{path}: {os.path.getsize(path) / 1e6:.1f} MB")


def data(options, program):
    """The recording of a program."""
    return f"{options.dir}/data/{program}.data"


def comparisons(options):
    """One for each program."""
    for program in options.programs:
        path = data(options, program)
        samples, total = recording.samples(path)
        yield compare.Comparison(program, path, f"{options.dir}/peer", options.dataspace,
                                 options.paths, samples, total)


def judge(options):
    """The table of unknown samples, and behind it the details."""
    lines = []
    for comparison in comparisons(options):
        lines.append(comparison.line())
        comparison.details(options.misses)
    print("\nUnknown at the reported IP, operands outside the stack:\n")
    compare.table(["program", "samples", "judged", "perf unknown %", "ours unknown %", "ratio",
                   "perf scalar %", "our scalar %", "in the program itself", "perf unknown %", "ours unknown %"], lines)


def running(options, program):
    """A program at work for longer than it is looked at."""
    folder = options.dir
    redis = f"{folder}/redis/src"
    if program == "redis":
        return wait.Running([f"{redis}/redis-server", "--port", "7777", "--save", ""],
                            f"{redis}/redis-benchmark -p 7777 -q -n 20000 -r 10000 -P 16"
                            " -t set,get,incr,lpush,lrange,hset,sadd,zadd")
    if program == "nginx":
        return wait.Running([f"{folder}/nginx/root/sbin/nginx", "-g", "daemon off; master_process off;"],
                            "wrk -t1 -c50 -d30 http://127.0.0.1:7780/")
    if program == "python":
        return wait.Running(["/usr/bin/python3", f"{HERE}/programs/work.py", "100000"])
    if program in ("go", "lapack"):
        return wait.Running([f"{folder}/{program}/run.sh"])
    return wait.Running([*command(program, folder)[:-1], "100000"])


def waits(options):
    """The table of samples on memory without an object, and before it the places."""
    os.makedirs(f"{options.dir}/data", exist_ok=True)
    lines = []
    for program in options.programs:
        path = f"{options.dir}/data/{program}.wait.data"
        if not os.path.exists(path) or options.again:
            wait.record(options.dataspace, path, running(options, program), options.seconds)
        found = wait.Waits(program, path, options.dataspace)
        lines.append(found.line(f"{options.dir}/peer"))
        found.details(options.misses)
    print("\nSamples of user code that touch memory, live, by the event that this machine has:\n")
    compare.table(["program", "samples", "perf unknown %", "ours unknown %", "named by frequency %", "why"], lines)


def draw(options):
    """Named samples for a person to check."""
    for comparison in comparisons(options):
        comparison.draw(options.drawn)


def costs(options):
    """The table of CPU time and memory, and the time to the first answer."""
    ours_lines, ratios = [], []
    peer = f"{options.dir}/peer"
    for program in options.programs:
        path = data(options, program)
        ours = cost.median([options.dataspace, "report", "-i", path], options.runs)
        theirs = cost.kept(
            [f"{peer}/perf", "report", "-g", "none", "--no-children", "-i", path,
             f"--objdump={peer}/objdump", "-s", "type,typeoff", "--stdio"],
            options.peer_runs, path.removesuffix(".data") + ".peer-cost.json", options.again)
        first = cost.first_answer(options.dataspace, path)
        size = os.path.getsize(f"{options.dir}/bin/{program}") / 1e6
        ours_lines.append([
            program, f"{size:.0f}", f"{ours.cpu_s:.2f}", f"{theirs.own_cpu_s:.2f}",
            f"{theirs.cpu_s:.2f}", f"{ours.tree_peak_mb:.0f}", f"{theirs.own_peak_mb:.0f}",
            f"{theirs.tree_peak_mb:.0f}", f"{ours.wall_s:.2f}", f"{theirs.wall_s:.2f}",
            "never" if first is None else f"{first[0]:.2f} ({first[1]:.2f})"])
        ratios.append([
            program, f"{ours.cpu_s / theirs.own_cpu_s:.3f}", f"{ours.cpu_s / theirs.cpu_s:.3f}",
            f"{ours.tree_peak_mb / theirs.own_peak_mb:.3f}",
            f"{ours.tree_peak_mb / theirs.tree_peak_mb:.3f}"])
        print(f"# {program} done", file=sys.stderr)
    print("\nCost of `dataspace report` and of `perf report -s type,typeoff --stdio`:\n")
    compare.table(["program", "file MB", "our CPU s", "perf alone s", "perf + objdump s",
                   "our RSS MB", "perf alone MB", "perf + objdump MB", "our wall s", "perf wall s",
                   "first answer s (CPU)"], ours_lines)
    print("\nOurs divided by perf's (below 1 is less):\n")
    compare.table(["program", "CPU / perf alone", "CPU / perf + objdump", "RSS / perf alone",
                   "RSS / perf + objdump"], ratios)


def main():
    """What was typed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["record", "judge", "draw", "cost", "wait"])
    parser.add_argument("dir", help="where build.sh and peer.sh put their products")
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--seconds", type=int, default=20, help="how long a running program is looked at")
    parser.add_argument("--dataspace", default="target/release/dataspace")
    parser.add_argument("--paths", help="restrict to one path: type or address")
    parser.add_argument("--again", action="store_true", help="record what is recorded already, measure perf again")
    parser.add_argument("--misses", type=int, default=15, help="sites to show (default 15)")
    parser.add_argument("--drawn", type=int, default=40, help="samples to draw (default 40)")
    parser.add_argument("--runs", type=int, default=3, help="runs of ours, the median is shown")
    parser.add_argument("--peer-runs", type=int, default=1, help="runs of perf")
    options = parser.parse_args()
    options.programs = options.programs or PROGRAMS + (RUNNING if options.what == "wait" else [])
    options.dir = os.path.abspath(options.dir)
    try:
        {"record": record, "judge": judge, "draw": draw, "cost": costs, "wait": waits}[options.what](options)
    except BrokenPipeError:
        # Whoever read it has seen enough; what is still buffered goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
