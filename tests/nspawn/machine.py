"""A Debian root that is booted with systemd in a container, and commands that run in it."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

# These end what hangs: a busy machine takes its time.
BOOT_S = 300
COMMAND_S = 600


class NotHere(Exception):
    """This machine cannot boot a container."""


def until(what, attempt):
    """What `attempt` gives when it gives something, and how long that took."""
    began = time.monotonic()
    while True:
        found = attempt()
        took = time.monotonic() - began
        if found:
            return found, took
        assert took < COMMAND_S, f"{what}: not within {COMMAND_S} s"
        time.sleep(0.02)


class Ran:
    """What a command did."""

    def __init__(self, done, began):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.took = time.monotonic() - began


def make_group(name):
    """A control group below our own: what the container makes of groups goes with it."""
    mounts = [line.split() for line in open("/proc/self/mounts")]
    unified = [mount[1] for mount in mounts if mount[2] == "cgroup2"]
    own = [line.strip()[3:] for line in open("/proc/self/cgroup") if line.startswith("0::")]
    if not unified or not own:
        raise NotHere("control groups of version 2 are not mounted")
    group = Path(unified[0]) / own[0].lstrip("/") / f"dataspace-{name}"
    try:
        group.mkdir()
    except OSError as error:
        raise NotHere(f"no control group can be made: {error}") from error
    return group


def remove_group(group):
    """Removes a control group and those below it, which the kernel may still be emptying. Beside
    version 2 systemd-nspawn makes the same groups in systemd's own hierarchy of version 1."""
    mounts = [line.split() for line in open("/proc/self/mounts")]
    below = group.relative_to(next(one for one in group.parents if one.is_mount()))
    groups = [Path(mount[1]) / below for mount in mounts if mount[2] in ("cgroup", "cgroup2")]
    deadline = time.monotonic() + 60
    while any(one.exists() for one in groups) and time.monotonic() < deadline:
        for directory in (found for one in groups for found, _, _ in os.walk(one, topdown=False)):
            try:
                os.rmdir(directory)
            except OSError:
                time.sleep(0.02)


class Machine:
    """A copy of a root; it is shut down and removed in the end, whatever happens."""

    def __init__(self, base, cache):
        self.base = base
        self.directory = Path(tempfile.mkdtemp(dir=cache, prefix="run-"))
        self.root = self.directory / "root"
        # systemd-nspawn keeps things by that name: there may be another one at the same time.
        self.name = f"--machine=dataspace-test-{os.getpid()}"
        self.has_package = False
        self.group = None
        self.nspawn = None
        self.init = None

    def __enter__(self):
        copy = ["cp", "-a", "--reflink=auto", str(self.base), str(self.root)]
        subprocess.run(copy, check=True)
        return self

    def __exit__(self, *_):
        # A second Ctrl-C does not leave a container behind.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if self.nspawn and self.nspawn.poll() is None:
            # With the first process of its pid namespace the kernel ends all of the container.
            for kill in (self.halt, self.nspawn.terminate, self.nspawn.kill):
                kill()
                try:
                    self.nspawn.wait(20)
                    break
                except subprocess.TimeoutExpired:
                    continue
        shutil.rmtree(self.directory, ignore_errors=True)
        if self.group:
            remove_group(self.group)

    def halt(self):
        """Asks its systemd to end at once, without ending each service."""
        if self.init:
            os.kill(self.init, signal.SIGRTMIN + 14)
        else:
            self.nspawn.terminate()

    def write(self, path, text, mode=0o644):
        """Writes a file in the root."""
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        place.chmod(mode)

    def boot(self):
        """Returns when its systemd has started what it was to start."""
        log = self.directory / "console"
        self.group = make_group(self.directory.name)
        # Version 2 of control groups, whatever the machine around it has: the kernel counts events
        # by its groups. The container's own network has nothing but a loopback.
        self.nspawn = subprocess.Popen(
            ["systemd-nspawn", "--quiet", f"--directory={self.root}", "--register=no"]
            + ["--keep-unit", "--private-network", "--capability=all", "--console=pipe"]
            + ["--system-call-filter=perf_event_open", self.name, "--boot"],
            stdin=subprocess.DEVNULL, stdout=open(log, "w"), stderr=subprocess.STDOUT,
            env=dict(os.environ, SYSTEMD_NSPAWN_UNIFIED_HIERARCHY="1"),
            # Ctrl-C is ours to answer.
            start_new_session=True,
            preexec_fn=lambda: (self.group / "cgroup.procs").write_text("0"),
        )
        deadline = time.monotonic() + BOOT_S
        state = "it does not answer"
        while time.monotonic() < deadline and self.nspawn.poll() is None:
            self.init = self.init or self.find_init()
            if self.init:
                state = self.run("systemctl", "is-system-running").out.strip()
                if state in ("running", "degraded"):
                    return
            time.sleep(0.1)
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        said = lines[-1] if lines else "without a word"
        raise NotHere(f"systemd-nspawn boots no system here: {state or said}: {said}")

    def find_init(self):
        """The first process of the container, when it is systemd."""
        children = f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children"
        for pid in Path(children).read_text().split():
            try:
                if os.readlink(f"/proc/{pid}/exe").endswith("/systemd"):
                    return int(pid)
            except OSError:
                continue
        return None

    def run(self, *words, user=None, timeout=COMMAND_S):
        """Runs a command in the booted system, as root or as one of its users."""
        if user:
            words = ("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups") + words
        began = time.monotonic()
        try:
            done = subprocess.run(
                ["nsenter", f"--target={self.init}", "--all", "--", "timeout", str(timeout)]
                + [str(word) for word in words],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, errors="replace", check=False, timeout=timeout + 10,
                env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
            )
        except subprocess.TimeoutExpired:
            done = subprocess.CompletedProcess(words, 124, "", "it does not end")
        return Ran(done, began)

    def chroot(self, *words):
        """Runs a command in the root before it is booted."""
        done = subprocess.run(
            ["systemd-nspawn", "--quiet", f"--directory={self.root}", "--register=no"]
            + ["--keep-unit", "--private-network", "--console=pipe", self.name]
            + list(words),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", check=False,
        )
        return done.returncode, done.stdout
