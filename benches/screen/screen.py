#!/usr/bin/env python3
"""Times the screen as whoever sits before it sees it: usage `benches/screen/screen.py BINARY`.

The real binary runs in a pseudo-terminal. Of a program of three threads, two million samples a minute are recorded
once; `report` shows the recording, of which a million samples and more are in the history, and keys are pressed. Then
a page of 90,000 rows is scrolled. FRAME is the time from a key to the first bytes of the new picture, CONTENT to the
last ones before it stands still. Then the first screen of `demo` and of `top -p` is timed, from the start of the
process to the first row of an object, and what the screen of an idle target takes of a core. It prints figures and
judges none.
"""

import fcntl
import os
import pty
import re
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time

PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
struct order { long price; int quantity; char symbol[12]; struct order *next; double filled[6]; };
struct stats { long received, sent; } g_stats __attribute__((aligned(64)));
static void *receive(void *unused) {
    for (;;) __atomic_fetch_add(&g_stats.received, 1, __ATOMIC_RELAXED);
}
static void *walk(void *unused) {
    struct order *first = 0;
    for (int i = 0; i < 100000; i++) {
        struct order *order = malloc(sizeof *order);
        order->price = i, order->quantity = i & 7, order->next = first;
        first = order;
    }
    for (long sum = 0;;) {
        for (struct order *order = first; order; order = order->next) sum += order->price * order->quantity;
        __atomic_fetch_add(&g_stats.sent, sum & 1, __ATOMIC_RELAXED);
    }
}
int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, i ? walk : receive, 0);
    pthread_join(threads[0], 0);
}
"""

ROUNDS = 5
STILL_S = 1.0


class Screen:
    """A process in a pseudo-terminal."""

    def __init__(self, command, columns=80, lines=24):
        self.start = time.monotonic()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execvp(command[0], command)
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, size)

    def read(self, wait_s):
        if not select.select([self.terminal], [], [], wait_s)[0]:
            return b""
        try:
            return os.read(self.terminal, 1 << 16)
        except OSError:
            return b""

    def until(self, pattern, limit_s=60.0):
        """Seconds from the start until the pattern was drawn."""
        drawn = b""
        while time.monotonic() - self.start < limit_s:
            drawn += self.read(0.01)
            if re.search(pattern, drawn):
                return time.monotonic() - self.start
        raise SystemExit(f"{pattern} was never drawn")

    def press(self, key):
        """Milliseconds from a key to the first and to the last bytes of what it draws."""
        while self.read(STILL_S):
            pass
        begin = time.monotonic()
        os.write(self.terminal, key)
        first = last = None
        while last is None or time.monotonic() - last < STILL_S:
            if self.read(0.02):
                last = time.monotonic()
                first = first or last
            elif time.monotonic() - begin > 5:
                break
        if first is None:
            return None
        return (first - begin) * 1e3, (last - begin) * 1e3

    def end(self):
        os.kill(self.pid, signal.SIGTERM)
        while self.read(1.0):
            pass
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


def cpu_s(pid):
    """CPU time of a process and of its children that have not been waited for."""
    ticks = 0
    pids = [str(pid)]
    while pids:
        one = pids.pop()
        with open(f"/proc/{one}/stat", encoding="ascii", errors="replace") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
        for task in os.listdir(f"/proc/{one}/task"):
            with open(f"/proc/{one}/task/{task}/children", encoding="ascii") as children:
                pids += children.read().split()
    return ticks / os.sysconf("SC_CLK_TCK")


def record(binary, directory):
    source, program = os.path.join(directory, "orders.c"), os.path.join(directory, "orders")
    with open(source, "w", encoding="ascii") as file:
        file.write(PROGRAM)
    subprocess.run(["gcc", "-O2", "-g", "-pthread", source, "-o", program], check=True)
    recording = os.path.join(directory, "orders.data")
    command = [binary, "record", "-o", recording, "-F", "12000", "--max-overhead", "off"]
    target = subprocess.Popen([program])
    try:
        command += ["--duration", "60", "-p", str(target.pid)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    finally:
        target.kill()
        target.wait()
    return program, recording


def keys(binary, recording):
    screen = Screen([binary, "report", "-i", recording])
    print(f"a recording of {os.path.getsize(recording) >> 20} MiB is on the screen after "
          f"{screen.until(b'named'):.1f} s")
    print(f"{'KEY':<10} {'FRAME':>8} {'CONTENT':>9}   ms, medians of {ROUNDS}")
    pages = [("object", b"\r"), ("layout", b"l"), ("code", b"c"), ("threads", b"t"), ("time", b"h"),
             ("filter", b"f"), ("group", b"g"), ("columns", b"o"), ("help", b"?")]
    for name, key in pages:
        times = []
        for _ in range(ROUNDS):
            times.append(screen.press(key))
            screen.press(b"F" if name == "filter" else b"q")
        times = [time for time in times if time is not None]
        if times:
            frame, content = (statistics.median(column) for column in zip(*times))
            print(f"{name:<10} {frame:8.1f} {content:9.1f}")
    screen.end()


def scroll(binary, directory):
    """A page of some 90,000 rows: the code of a function of 100,000 instructions, of which 65,536 are listed."""
    source, program = os.path.join(directory, "long.c"), os.path.join(directory, "long")
    with open(source, "w", encoding="ascii") as file:
        file.write("struct order { long price, qty; } g[512]; volatile long sink;\nint main(void) { for (;;) {\n")
        file.writelines(f"sink += g[{i % 512}].{('qty', 'price')[i % 2]};\n" for i in range(25000))
        file.write("}}\n")
    subprocess.run(["gcc", "-O0", "-g", source, "-o", program], check=True)
    recording = os.path.join(directory, "long.data")
    command = [binary, "record", "-o", recording, "--duration", "3", "--", program]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    screen = Screen([binary, "report", "-i", recording], 160, 50)
    screen.until(b"named")
    _, content = screen.press(b"c")
    print(f"the code of a function of 100,000 instructions is there after {content:.0f} ms; then, to the whole picture:")
    moves = [("down", b"j"), ("page down", b"\x1b[6~"), ("end", b"\x1b[F"), ("page up", b"\x1b[5~"),
             ("home", b"\x1b[H"), ("wheel", b"\x1b[<65;10;10M")]
    for name, key in moves:
        times = [screen.press(key) for _ in range(ROUNDS)]
        print(f"{name:<10} {statistics.median(time[1] for time in times if time):8.1f} ms")
    screen.end()


def first_screens(binary, program):
    for name in ("demo", "top -p"):
        times = []
        for _ in range(ROUNDS):
            target = None
            command = [binary, "demo"]
            if name != "demo":
                target = subprocess.Popen([program])
                command = [binary, "top", "-p", str(target.pid)]
            screen = Screen(command)
            times.append((screen.until(b"named"), screen.until(rb"order")))
            screen.end()
            if target:
                target.kill()
                target.wait()
        header, row = (statistics.median(column) for column in zip(*times))
        print(f"{name:<10} header after {header:.2f} s, first object after {row:.2f} s")


def idle(binary):
    target = subprocess.Popen(["sleep", "1000"])
    screen = Screen([binary, "top", "-p", str(target.pid)])
    screen.until(b"named")
    end = time.monotonic() + 5
    while time.monotonic() < end:
        screen.read(0.1)
    before, begin = cpu_s(screen.pid), time.monotonic()
    while time.monotonic() < begin + 20:
        screen.read(0.1)
    share = (cpu_s(screen.pid) - before) / (time.monotonic() - begin)
    print(f"an idle target's screen takes {share:.1%} of a core")
    screen.end()
    target.kill()
    target.wait()


def main():
    binary = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory:
        program, recording = record(binary, directory)
        keys(binary, recording)
        scroll(binary, directory)
        first_screens(binary, program)
        idle(binary)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
