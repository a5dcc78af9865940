#!/usr/bin/env python3
"""Size: memory and descriptors of `dataspace top` on large targets, and what their exit costs.

scale.py DATASPACE [CASE…] [--seconds N]

Cases: threads (10,000 in one process), processes (1,000), mappings (50,000 in one process), sessions
(of a daemon: one, twenty of root, twenty of as many users), storm (fork and exec as fast as the machine
goes, for N seconds; 600 by default). Prints one line a case, and for the storm one line each tenth of
it; nothing is asserted. Wants root, gcc and a machine at rest.
"""
import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
N_THREADS, N_PROCESSES, N_MAPPINGS = 10_000, 1_000, 50_000


def build(name, directory):
    program = directory / name
    command = ["gcc", "-O1", "-g", "-pthread", "-o", program, HERE / f"{name}.c"]
    subprocess.run(command, check=True)
    return program


def size(pid):
    """Resident memory in MB and open descriptors of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024, len(os.listdir(f"/proc/{pid}/fd"))


def crowd(program, kind, n):
    process = subprocess.Popen(
        [program, kind, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


def end_ms(process):
    """How long the process takes to end when it is told to."""
    began = time.monotonic()
    process.stdin.write(b"\n")
    process.stdin.flush()
    process.wait()
    return (time.monotonic() - began) * 1e3


def session(dataspace, arguments):
    command = [dataspace, "top", "--json", "--interval", "1", *arguments]
    began = time.monotonic()
    top = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    top.stdout.readline()
    return top, time.monotonic() - began


def finish(top):
    """The accounting and the warnings of the last snapshot."""
    output, errors = top.communicate(timeout=60)
    lines = output.decode().strip().splitlines()
    if not lines:
        return errors.decode()
    last = json.loads(lines[-1])
    accounting = last["accounting"]
    right = (accounting["attributed"] + sum(accounting["unknown"].values())
             + accounting["not_memory"] + sum(accounting["lost"].values()))
    return (f"samples {accounting['kernel']} (accounted for {right}), others' "
            f"{accounting.get('outside', 0)}, warnings {last['warnings']}")


def one_process(dataspace, program, kind, n):
    alone_ms = min(end_ms(crowd(program, kind, n)) for _ in range(3))
    process = crowd(program, kind, n)
    top, first_s = session(dataspace, ["-p", str(process.pid)])
    time.sleep(5)
    memory, n_open = size(top.pid)
    watched_ms = end_ms(process)
    print(f"{n} {kind}: first snapshot {first_s:.1f} s (the interval is 1 s), {memory:.1f} MB, "
          f"{n_open} descriptors, exit {watched_ms:.0f} ms (alone {alone_ms:.0f} ms); {finish(top)}",
          flush=True)


def many_processes(dataspace, program):
    crowds = [crowd(program, "sleep", 0) for _ in range(N_PROCESSES)]
    pids = ",".join(str(process.pid) for process in crowds)
    try:
        for arguments in (["-p", pids], ["--comm", "crowd"], ["-a"]):
            top, first_s = session(dataspace, [*arguments, "--duration", "6"])
            time.sleep(4)
            memory, n_open = size(top.pid)
            print(f"{N_PROCESSES} processes by {arguments[0]}: first snapshot {first_s:.1f} s, "
                  f"{memory:.1f} MB, {n_open} descriptors; {finish(top)}", flush=True)
    finally:
        for process in crowds:
            end_ms(process)


def storm(dataspace, program, seconds):
    for arguments in (["--", str(program), str(seconds)], ["-a", "--duration", str(seconds)]):
        beside = None
        if arguments[0] == "-a":
            beside = subprocess.Popen([program, str(seconds)], stderr=subprocess.PIPE)
        top = subprocess.Popen([dataspace, "top", "--json", "--interval", "60", *arguments],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for part in range(10):
            time.sleep(seconds / 10 * (0.98 if part == 9 else 1))
            if top.poll() is not None:
                break
            memory, n_open = size(top.pid)
            print(f"storm by {arguments[0]}, {part + 1}/10: {memory:.1f} MB, {n_open} descriptors",
                  flush=True)
        print(f"storm by {arguments[0]}: {finish(top)}", flush=True)
        if beside:
            print(beside.communicate()[1].decode().strip())


def proportional_mb(pid):
    """Memory of a process in MB, with its share of what it has together with others."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def tree(pid):
    """A process and its descendants."""
    children = [int(child) for task in os.listdir(f"/proc/{pid}/task")
                for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
    return [pid] + [one for child in children for one in tree(child)]


def sessions(dataspace, directory):
    """How long attaching takes, and the memory of a daemon and its workers after ten seconds."""
    # Users may go there.
    directory.chmod(0o755)
    chase = directory / "chase"
    source = HERE.parent.parent / "tests/programs/chase.c"
    subprocess.run(["gcc", "-O2", "-g", "-o", chase, source], check=True)
    for name, users in (("one", [0]), ("20 of root", [0] * 20), ("20 of users", range(70_000, 70_020))):
        socket = directory / "sock"
        daemon = subprocess.Popen([dataspace, "daemon", "--socket", socket], stderr=subprocess.DEVNULL)
        while not socket.exists():
            time.sleep(0.01)
        targets = [subprocess.Popen(["nice", "-n", "19", chase, "1"], stdin=subprocess.PIPE, user=user,
                                    group=user, stdout=subprocess.DEVNULL) for user in users]
        time.sleep(1)
        took = []
        for user, target in zip(users, targets):
            began = time.monotonic()
            subprocess.run([dataspace, "attach", "--socket", socket, "-p", str(target.pid)], user=user,
                           group=user, check=True, stdout=subprocess.DEVNULL)
            took.append((time.monotonic() - began) * 1e3)
        time.sleep(10)
        memory = [proportional_mb(pid) for pid in tree(daemon.pid)]
        print(f"{name}: attached in {min(took):.0f} to {max(took):.0f} ms; daemon {memory[0]:.1f} MB, "
              f"{len(memory) - 1} others {sum(memory[1:]):.1f} MB", flush=True)
        for process in (daemon, *targets):
            process.terminate()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("dataspace")
    parser.add_argument("cases", nargs="*", default=["threads", "processes", "mappings", "sessions", "storm"])
    parser.add_argument("--seconds", type=int, default=600)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        program = build("crowd", Path(directory))
        for case in options.cases:
            match case:
                case "threads":
                    one_process(options.dataspace, program, "threads", N_THREADS)
                case "mappings":
                    one_process(options.dataspace, program, "mappings", N_MAPPINGS)
                case "sessions":
                    sessions(options.dataspace, Path(directory))
                case "processes":
                    many_processes(options.dataspace, program)
                case "storm":
                    storm(options.dataspace, build("storm", Path(directory)), options.seconds)
                case _:
                    parser.error(f"no case {case}")


if __name__ == "__main__":
    main()
