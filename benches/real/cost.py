"""CPU time and peak memory of a command: of its own process and with its children."""

import glob
import json
import os
import subprocess
import threading
import time
from dataclasses import asdict, dataclass

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
# Memory of a process is looked at so often; its own peak is the kernel's figure (VmHWM).
LOOK_S = 0.01


@dataclass
class Cost:
    """What a command took. MB are 10^6 bytes."""

    wall_s: float
    own_cpu_s: float
    children_cpu_s: float
    own_peak_mb: float
    tree_peak_mb: float  # of all its processes at one time

    @property
    def cpu_s(self):
        """Of all its processes."""
        return self.own_cpu_s + self.children_cpu_s


def _status(pid, key):
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith(key + ":"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def _tree(pid):
    """The process and all below it."""
    found = [pid]
    for parent in found:
        # Each thread has those that it began.
        for path in glob.glob(f"/proc/{parent}/task/*/children"):
            try:
                with open(path, encoding="ascii") as file:
                    found += [int(word) for word in file.read().split()]
            except OSError:
                pass
    return found


def _times(pid):
    """User and system time of a process, then of the children that it waited for."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    # proc(5): utime, stime, cutime, cstime are fields 14 to 17; the first here is field 3.
    return [int(field) * TICK_S for field in fields[11:15]]


def _cpu_so_far(pid):
    """Of a process and all below it, while they run; one that has just ended counts with who waited for it."""
    taken = 0
    for process in _tree(pid):
        try:
            taken += sum(_times(process))
        except OSError:
            pass
    return taken


class _Memory(threading.Thread):
    """Looks at the memory of a process and of what it starts."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.own, self.tree, self.over = pid, 0, 0, threading.Event()

    def run(self):
        while not self.over.wait(LOOK_S):
            self.own = max(self.own, _status(self.pid, "VmHWM"))
            self.tree = max(self.tree, sum(_status(pid, "VmRSS") for pid in _tree(self.pid)))


def measure(command):
    """Runs it, its output thrown away."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    memory = _Memory(process.pid)
    memory.start()
    # It stays a zombie: /proc still has its own times apart from those of children it waited for.
    ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    wall_s = time.monotonic() - began
    user, system, children_user, children_system = _times(process.pid)
    memory.over.set()
    memory.join()
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = ended.si_status
    if ended.si_status != 0:
        raise SystemExit(f"{' '.join(command)} ended with {ended.si_status}")
    # wait4's peak is that of the largest of all: exact for a command that starts nothing.
    own = usage.ru_maxrss * 1024 if children_user + children_system == 0 else memory.own
    return Cost(wall_s, user + system, children_user + children_system, own / 1e6,
                max(own, memory.tree) / 1e6)


def median(command, n_runs):
    """The run of median CPU time."""
    runs = sorted((measure(command) for _ in range(n_runs)), key=lambda cost: cost.cpu_s)
    return runs[len(runs) // 2]


def kept(command, n_runs, path, again):
    """The same, once: what was measured is kept in a file."""
    if again or not os.path.exists(path):
        measured = asdict(median(command, n_runs))
        with open(path, "w", encoding="ascii") as file:
            json.dump(measured, file)
    with open(path, encoding="ascii") as file:
        return Cost(**json.load(file))


def first_answer(dataspace, recording):
    """From the start of `script` to its first line with an object: seconds, and on CPUs by all its processes."""
    began = time.monotonic()
    process = subprocess.Popen([dataspace, "script", "-i", recording], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    found = None
    for line in process.stdout:
        if b'"object":"{' in line:
            found = time.monotonic() - began, _cpu_so_far(process.pid)
            break
    process.kill()
    process.wait()
    return found
