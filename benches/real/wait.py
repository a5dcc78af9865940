"""Unknown samples where programs wait: live, with the event that `dataspace` chooses, and at the triggers that it finds."""

import json
import os
import signal
import subprocess
import time
from collections import Counter

import answer
import recording

# Of each thread on a CPU; more than the overhead's bound allows, so that few seconds tell enough.
RATE_HZ = 1000


class Running:
    """A program, and what keeps it busy."""

    def __init__(self, command, load=None):
        self.program = spawn(command)
        self.load = None
        if load:
            time.sleep(1)  # a server that listens
            self.load = spawn(["sh", "-c", f"while :; do {load}; done"])

    def __enter__(self):
        time.sleep(1)
        return self.program.pid

    def __exit__(self, *_):
        for process in filter(None, [self.load, self.program]):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def spawn(command):
    """A process group of its own, silent."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)


def record(dataspace, path, running, seconds):
    """Records a running program."""
    with running as pid:
        subprocess.run(
            [dataspace, "record", "-p", str(pid), "-F", str(RATE_HZ), "--max-overhead", "off",
             "--duration", str(seconds), "-o", path], check=True, stderr=subprocess.DEVNULL)


class Waits:
    """The samples of user code that touch memory, and those of them that have no object."""

    def __init__(self, program, path, dataspace):
        self.program, self.path = program, path
        script = subprocess.run([dataspace, "script", "-i", path], check=True, stdout=subprocess.PIPE, text=True)
        lines = map(json.loads, script.stdout.splitlines())
        self.touching = [line for line in lines if line["reason"] != "kernel" and not line["not_memory"]]
        self.unknown = [line for line in self.touching if line["object"] is None]

    def percent(self, n):
        """Of the samples that touch memory."""
        return 100 * n / max(1, len(self.touching))

    def peer_unknown(self, peer):
        """Those of them that perf leaves without a type at the IP that it reports."""
        samples, _ = recording.samples(self.path, "pid,tid,time,ip")
        places = {(it.time_ns, it.tid): (it.path, it.file_offset) for it in samples}
        answers, _ = answer.peer_answers(peer, self.path)
        unknown = 0
        for line in self.touching:
            theirs = answers.get(places.get((line["time_ns"], line["tid"])))
            unknown += theirs is None or answer.is_peer_unknown(theirs)
        return unknown

    def line(self, peer):
        """One line of the table."""
        reasons = Counter(line["reason"] for line in self.unknown)
        theirs = f"{self.percent(self.peer_unknown(peer)):.1f}" if os.path.exists(f"{peer}/perf") else "-"
        by_frequency = sum(line["frequency"] for line in self.touching)
        return [self.program, len(self.touching), theirs, f"{self.percent(len(self.unknown)):.1f}",
                f"{self.percent(by_frequency):.1f}",
                ", ".join(f"{reason} {self.percent(n):.1f}" for reason, n in reasons.most_common())]

    def details(self, n_sites):
        """The functions and instructions whose waits have no object, heaviest first."""
        sites = Counter(map(place, self.unknown))
        print(f"\n## {self.program}: {len(sites)} places without an object")
        for (reason, module, function, ip), n in sites.most_common(n_sites):
            print(f"  {self.percent(n):5.2f}% {reason} {module} {function} {ip}")


def place(line):
    """Why and where a sample has no object."""
    scope = line["scope"] or {}
    return line["reason"], os.path.basename(scope.get("object") or "?"), scope.get("function"), line["ip"]
