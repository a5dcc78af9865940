"""What stops working without each capability of the unit, with which words and which exit code: the
table of systemd/README.md, held to the service itself and to the commands that need no daemon."""

import re
import subprocess

from machine import until

PROGRAMS = ["chase", "own", "replaced", "private"]
CAPABILITIES = ["CAP_PERFMON", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH", "CAP_CHECKPOINT_RESTORE"]
DROP_IN = "/etc/systemd/system/{}.d/test.conf"
UNREADABLE = "the load object's file is gone or cannot be read"

# A program whose code is in a library that is deleted while it runs, as by an upgrade.
REPLACED = "int chase_main(int, char **);\nint main(int c, char **v) { return chase_main(c, v); }\n"


def prepare(machine, program):
    """Compiles the program whose library goes, from the one that is a program itself."""
    opt = machine.root / "opt"
    main = machine.directory / "replaced.c"
    main.write_text(REPLACED)
    library = ["gcc", "-O2", "-g", "-shared", "-fPIC", "-Dmain=chase_main", "-o", opt / "libchase.so"]
    subprocess.run(library + [program], check=True)
    link = ["gcc", "-O2", "-g", "-o", opt / "replaced", main, "-L", opt, "-lchase", "-Wl,-rpath,/opt"]
    subprocess.run(link, check=True)
    service = "[Service]\nDynamicUser=yes\nExecStart=/opt/replaced 8\n"
    machine.write("/etc/systemd/system/replaced.service", service)
    # In a mount namespace of its own, at a path that is nothing outside of it.
    start = "cp /opt/chase /tmp/chase && exec /tmp/chase 8"
    private = f"[Service]\nPrivateTmp=yes\nExecStart=/bin/sh -c '{start}'\n"
    machine.write("/etc/systemd/system/private.service", private)
    own = "[Service]\nUser=other\nExecStart=/home/other/chase 8\n"
    machine.write("/etc/systemd/system/own.service", own)


def start(machine):
    """Starts the programs and waits until each has its code mapped; the library is gone then."""
    code = {"replaced": "/opt/libchase.so", "own": "/home/other/chase", "private": "/tmp/chase"}
    for unit, path in code.items():
        began = machine.run("systemctl", "start", f"{unit}.service")
        assert began.code == 0, began.err
        pid = machine.run("systemctl", "show", f"{unit}.service", "-p", "MainPID", "--value").out
        maps = f"/proc/{pid.strip()}/maps"
        until(f"{unit} has mapped {path}", lambda: path in machine.run("cat", maps).out)
    (machine.root / "opt/libchase.so").unlink(missing_ok=True)


def restart(machine, settings, unit="dataspace.service"):
    """Starts the service with other settings than the unit's, or with the unit's own; of its workers where so said."""
    path = DROP_IN.format(unit)
    if settings:
        machine.write(path, "[Service]\n" + settings)
    else:
        (machine.root / path.lstrip("/")).unlink()
    machine.run("systemctl", "daemon-reload")
    ran = machine.run("systemctl", "restart", "dataspace.service")
    assert ran.code == 0, f"the daemon does not start: {ran.err}"


def without(machine, capability):
    """Starts the service without one capability."""
    held = " ".join(one for one in CAPABILITIES if one != capability)
    names = ["AmbientCapabilities", "CapabilityBoundingSet"]
    restart(machine, "".join(f"{name}=\n{name}={held}\n" for name in names))


def command(machine, capability, *words):
    """Runs a command as the daemon's user with all capabilities of the unit but one."""
    held = [one.removeprefix("CAP_").lower() for one in CAPABILITIES if one != capability]
    sets = ",".join(["-all"] + [f"+{one}" for one in held])
    users = ["--reuid=dataspace", "--regid=dataspace", "--clear-groups"]
    kinds = [f"--{kind}={sets}" for kind in ("inh-caps", "ambient-caps", "bounding-set")]
    return machine.run("setpriv", *users, *kinds, "dataspace", *words)


def check_doctor(machine, capability):
    """`doctor` names what is missing, with the command that would grant it."""
    ran = command(machine, capability, "doctor")
    missing = re.findall(r"^no +(CAP_\w+)", ran.out, re.MULTILINE)
    assert ran.code == 0 and capability in missing, f"doctor: {ran.code}: {ran.out}{ran.err}"
    others = [one for one in CAPABILITIES if one != capability]
    assert not set(others) & set(missing), f"doctor misses {missing}"
