"""The page's budgets, measured in a browser, on a program with 10,000 variables."""

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import sync_playwright

REPOSITORY = Path(__file__).resolve().parent.parent.parent
N_FUNCTIONS, N_EACH = 100, 100
N_OBJECTS = N_FUNCTIONS * N_EACH
# A session has 8,192 names; what more there is it sums up as <Other>. An answer of its history has 10,000 rows.
N_LISTED = 8000
N_ROWS = 10_000
N_LOADS = 15
N_FRAMES = 300
FIRST_PAINT_MS, FRAME_MS = 100, 8
MOST_OF_BARE = 1.5
# What a collection leaves is not the same to the byte.
GROWTH = 1.05

faults = []


def judge(text, value, most):
    is_kept = value <= most
    print(f"{text}: {value:.1f} (at most {most:g}){'' if is_kept else '   NOT KEPT'}")
    if not is_kept:
        faults.append(text)


def program(directory):
    """A program that touches 10,000 variables in turns, and leaves the processor to others once it is told to."""
    source = Path(directory) / "many.c"
    with open(source, "w", encoding="ascii") as out:
        out.write("#include <signal.h>\n#include <time.h>\nstatic volatile sig_atomic_t is_calm;\n")
        out.write("static void calm(int number) { (void)number; is_calm = 1; }\n")
        for function in range(N_FUNCTIONS):
            names = [f"quantity_{function:02}_{number:02}" for number in range(N_EACH)]
            out.write("static volatile long " + ", ".join(names) + ";\n")
            out.write(f"__attribute__((noinline)) static void add_{function:02}(void) {{\n")
            out.write("".join(f"  {name} += 3;\n" for name in names) + "}\n")
        calls = "".join(f"    add_{function:02}();\n" for function in range(N_FUNCTIONS))
        out.write("static void rest(void) { struct timespec time = { 0, 9000000 }; nanosleep(&time, 0); }\n")
        out.write(f"int main(void) {{\n  signal(SIGUSR1, calm);\n  for (unsigned turn = 0;; turn++) {{\n{calls}"
                  "    if (is_calm && turn % 64 == 0) rest();\n  }\n}\n")
    binary = Path(directory) / "many"
    subprocess.run(["gcc", "-O1", "-g", source, "-o", binary], check=True)
    return binary


class Page:
    """The page's server, and its API."""

    def __init__(self, binary, pid):
        command = [binary, "web", "-p", str(pid), "-F", "4000", "--max-overhead", "off"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            sys.exit("not run: the program cannot be sampled here")
        self.origin, self.token = self.address.split("/#token=")

    def snapshot(self):
        request = urllib.request.Request(f"{self.origin}/v1/sessions/1/snapshot", headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request) as answer:
            text = answer.read()
        return len(text), json.loads(text)


def wait_for_objects(page):
    deadline = time.monotonic() + 240
    while True:
        n_bytes, snapshot = page.snapshot()
        n_objects = len(snapshot["objects"])
        if n_objects >= N_LISTED:
            print(f"objects: {n_objects}, {n_bytes / 1e6:.1f} MB of JSON a second")
            return
        if time.monotonic() > deadline:
            sys.exit(f"only {n_objects} objects came")
        time.sleep(1)


def wait_until_page(tab, expression):
    deadline = time.monotonic() + 120
    while not tab.evaluate(expression):
        if time.monotonic() > deadline:
            sys.exit(f"not in time: {expression}")
        time.sleep(0.2)


def first_paint(browser, page):
    """Milliseconds from the request to the first content, in turns with an answer of one line."""
    times = {page.address: [], page.origin + "/v1/health": []}
    rows = []
    for _ in range(N_LOADS):
        for address, paints in times.items():
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            tab = context.new_page()
            began = time.monotonic()
            tab.goto(address, wait_until="commit")
            while not (paint := tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")):
                time.sleep(0.005)
            paints.append(paint)
            if address == page.address:
                tab.get_by_role("row").nth(2).wait_for()
                rows.append((time.monotonic() - began) * 1000)
            context.close()
    own, bare = (statistics.median(paints) for paints in times.values())
    print(f"rows are there: {statistics.median(rows):.0f} ms after the request, median of {N_LOADS}")
    print(f"first paint of one line of text: {bare:.1f} ms")
    # A new tab begins with a process of the browser, which alone may take longer than the promise.
    judge("first paint, ms, median", own, max(FIRST_PAINT_MS, MOST_OF_BARE * bare))


# Scrolls, and notes how long each frame takes from its beginning until the browser has time for something else.
SCROLL = """async ([frames, step]) => {
  const grid = document.querySelector("[role=treegrid]");
  const times = [];
  const channel = new MessageChannel();
  for (let at = 0; at < frames; at += 1) {
    const began = await new Promise(requestAnimationFrame).then(() => performance.now());
    grid.scrollTop += step;
    await new Promise((resolve) => { channel.port1.onmessage = resolve; channel.port2.postMessage(0); });
    times.push(performance.now() - began);
    if (grid.scrollTop + grid.clientHeight >= grid.scrollHeight - 1) grid.scrollTop = 0;
  }
  channel.port1.close();
  return [times, document.querySelectorAll(".grid-body [role=row]").length];
}"""


def scroll(tab, counters):
    for step in (26, 78, 260):
        before = counters()
        frames, n_rows = tab.evaluate(SCROLL, [N_FRAMES, step])
        after = counters()
        frames.sort()
        each = {name: (after[name] - before[name]) * 1000 / N_FRAMES for name in ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")}
        print(f"scrolling by {step} px: {n_rows} rows in the page; a frame has "
              + ", ".join(f"{name.removesuffix('Duration').lower()} {ms:.2f} ms" for name, ms in each.items())
              + f"; with painting median {statistics.median(frames):.1f}, p99 {frames[int(0.99 * N_FRAMES)]:.1f}, longest {frames[-1]:.1f} ms")
        judge(f"script, style and layout of a frame at {step} px, ms", sum(each.values()), FRAME_MS)


def stream(tab, cdp, counters, minutes):
    """Memory of the page after each minute, garbage collected."""
    heaps = []
    for minute in range(minutes + 1):
        for _ in range(2):
            cdp.send("HeapProfiler.collectGarbage")
        now = counters()
        heaps.append(now["JSHeapUsedSize"] / 1e6)
        samples = tab.evaluate("parseInt(document.querySelector('.accounts').textContent)")
        print(f"after {minute} min: heap {heaps[-1]:.1f} MB, {now['Nodes']:.0f} nodes, {now['JSEventListeners']:.0f} listeners, {samples} samples")
        if minute < minutes:
            time.sleep(60)
    if minutes >= 4:
        # The first minutes fill what is kept of a minute, as the trend.
        quarter = max(1, len(heaps) // 4)
        # A snapshot may be on its way when it is looked at: the least of many looks has none.
        begin, end = min(heaps[2:2 + quarter]), min(heaps[-quarter:])
        judge(f"heap at the end of {minutes} min in hundredths of that at the beginning", 100 * end / begin, 100 * GROWTH)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chromium")
    parser.add_argument("binary", nargs="?", default=str(REPOSITORY / "target" / "release" / "dataspace"))
    parser.add_argument("--minutes", type=int, default=5)
    asked = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        target = subprocess.Popen([program(directory)])
        page = None
        try:
            page = Page(asked.binary, target.pid)
            wait_for_objects(page)
            target.send_signal(signal.SIGUSR1)
            browser = playwright.chromium.launch(executable_path=asked.chromium, args=["--no-sandbox"])
            print(f"in Chromium {browser.version}")
            first_paint(browser, page)
            tab = browser.new_page(viewport={"width": 1280, "height": 800})
            tab.goto(page.address)
            tab.get_by_role("row").nth(20).wait_for()
            cdp = tab.context.new_cdp_session(tab)
            cdp.send("Performance.enable", {"timeDomain": "threadTicks"})
            counters = lambda: {one["name"]: one["value"] for one in cdp.send("Performance.getMetrics")["metrics"]}
            scroll(tab, counters)
            tab.evaluate("location.hash = '#/1/objects?group=instruction&window=all'")
            n_rows = "parseInt(document.querySelector('[role=treegrid]').getAttribute('aria-rowcount'))"
            wait_until_page(tab, f"{n_rows} >= {N_ROWS}")
            print(f"objects by instruction: {tab.evaluate(n_rows)} rows")
            scroll(tab, counters)
            tab.go_back()
            wait_until_page(tab, f"{n_rows} < {N_ROWS}")
            stream(tab, cdp, counters, asked.minutes)
            browser.close()
        finally:
            for process in [target] + ([page.process] if page else []):
                process.terminate()
                process.wait()
    for fault in faults:
        print(f"not kept: {fault}")
    sys.exit(1 if faults else 0)


main()
