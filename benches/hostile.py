#!/usr/bin/env python3
"""Programs that have far too much of one thing, and what it costs to name their samples: CPU time and memory for each
number of it. Both are to grow as the number does, up to a limit.

    benches/hostile.py DIR [--dataspace target/release/dataspace] [--most 100000] [SHAPE ...]
"""

import argparse
import os
import resource
import subprocess

HEAD = """
#include <time.h>
struct node { long x, y; struct node *next; };
static struct node nodes[64];
volatile long gate[1024];
"""
HOT = "__attribute__((noinline)) long hot(struct node *p, long s) {"
CHASE = "for (int i = 0; i < 1000; i++) { s += p->y; p = p->next; }"
MAIN = """
int main(void) {
    struct timespec begin, now;
    long s = 0;
    for (int i = 0; i < 64; i++) { nodes[i].next = &nodes[(i * 7 + 1) % 64]; nodes[i].y = i % 3; }
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do { s = hot(nodes, (s & 7) + 3); clock_gettime(CLOCK_MONOTONIC, &now); } while (now.tv_sec - begin.tv_sec < 3);
    return s == 12345;
}
"""


def plain(body, before=""):
    return HEAD + before + HOT + body + "return s; }" + MAIN


def assembly(lines):
    """A function of assembly; %0 is a `struct node *`, %1 a number."""
    text = "\\n".join(lines)
    clobbered = '"rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "cc", "memory"'
    return plain(f'__asm__ volatile("{text}" : "+r"(p), "+r"(s) :: {clobbered}); s += p->x;')


def each(n, text):
    return "".join(text.replace("#", str(i)) for i in range(n))


def repeated(n, lines):
    return [".set i,0", f".rept {n}", *lines, ".set i,i+1", ".endr"]


SKIPPED = ["cmpq %1,gate(%%rip)", "jge 1f"]
SHAPES = {
    "blocks": lambda n: assembly(repeated(n, [*SKIPPED, "addq 8(%0),%1", "movq 16(%0),%0", "1:"])),
    "nested loops": lambda n: assembly(
        [f".Ln{i}:\\nmovq 16(%0),%0" for i in range(n)]
        + [f"addq 8(%0),%1\\ncmpq $1000000,%1\\njg .Ln{i}" for i in reversed(range(n))]),
    "slots that meet": lambda n: assembly(
        [f"subq ${8 * n + 64},%%rsp", *repeated(n, [*SKIPPED, "movq %0,(i*8)(%%rsp)", "1:"]),
         *repeated(n, ["movq (i*8)(%%rsp),%%rax"]), f"addq ${8 * n + 64},%%rsp"]),
    "locals": lambda n: plain(each(n, "volatile long v# = s;") + CHASE),
    "members": lambda n: plain(CHASE).replace("long x, y;", each(n, "long m#;") + "long x, y;"),
    "arms of a union": lambda n: plain(CHASE).replace(
        "long x, y;", "union {" + each(n, "struct { long a#, b#; } m#;") + "} u; long x, y;"),
    "types": lambda n: plain(CHASE, "struct t { long a; };" + each(n, "struct t# { struct t *p; } g#;")),
    "statics": lambda n: plain(CHASE, each(n, "volatile long g#;")),
    "functions": lambda n: plain(CHASE, each(n, "long f#(struct node *p) { return p->x + #; }")),
    "callers": lambda n: plain(CHASE) + each(n, "long f#(struct node *p) { return hot(p, #); }"),
    "calls": lambda n: plain(
        CHASE + "if (s < 0) {" + each(n, "s += g(p, s);") + "}",
        "__attribute__((noinline)) long g(struct node *p, long s) { return s + p->y; }"),
    "lines": lambda n: plain(each(n, "s += p->y; p = p->next;\n")),
    "labels": lambda n: plain(
        "static void *to[] = {" + each(n, "&&l#,") + "}; int k = 0; next: if (k++ > 1000) return s; "
        f"goto *to[(s + k) % {n}];" + each(n, "l#: s += p->y; p = p->next; goto next;")),
}


def cost(command):
    """CPU seconds of user code, and peak memory in MB, of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(["/usr/bin/env", "time", "-f", "%M", *command], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return seconds, int(done.stderr.split()[-1]) / 1000, done.stdout


def measured(name, n, options):
    at = os.path.join(options.dir, f"{name.replace(' ', '-')}-{n}")
    if not os.path.exists(at):
        with open(at + ".c", "w") as source:
            source.write(SHAPES[name](n))
        try:
            subprocess.run(["gcc", "-O0", "-g", at + ".c", "-o", at], check=True, capture_output=True, timeout=100)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return "gcc gives up"
    record = [options.dataspace, "record", "-F", "250", "-o", at + ".data", "--duration", "2", "--", at]
    subprocess.run(record, check=True, capture_output=True, timeout=60)
    # One process, so that its peak is the whole one.
    seconds, peak, told = cost([options.dataspace, "report", "--sandbox", "off", "-i", at + ".data"])
    accounts = next(line for line in told.splitlines() if line.startswith("accounts"))
    return f"{seconds:6.2f} s {peak:6.0f} MB  {accounts.split('  ', 1)[1].split(' + not')[0]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir")
    parser.add_argument("--dataspace", default="target/release/dataspace")
    parser.add_argument("--most", type=int, default=100_000)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=", ".join(SHAPES))
    options = parser.parse_intermixed_args()
    os.makedirs(options.dir, exist_ok=True)
    for name in options.shapes or SHAPES:
        for n in (10**power for power in range(3, 7) if 10**power <= options.most):
            print(f"{name:16} {n:8} {measured(name, n, options)}", flush=True)


main()
