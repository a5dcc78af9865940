"""What the service promises, each as a function that returns its figure or says what is wrong."""

import json
import os
import re
import secrets
import shutil
import subprocess
import time
import traceback

import privilege
from machine import until

NEXT = "{structure:cell}.{pointer+structure:cell next}"
BITS = {
    "CAP_DAC_READ_SEARCH": 2,
    "CAP_SYS_PTRACE": 19,
    "CAP_PERFMON": 38,
    "CAP_CHECKPOINT_RESTORE": 40,
}

CONFIGURATION = """
[[session]]
name = "redis"
unit = "redis-server"

[[session]]
name = "chase"
unit = "chase"
"""

UNITS = {
    "chase.service": "[Service]\nExecStart=/opt/chase 8\nDynamicUser=yes\n"
    "[Install]\nWantedBy=multi-user.target\n",
    "load.service": "[Unit]\nAfter=redis-server.service\n"
    "[Service]\nExecStart=/usr/bin/redis-benchmark -q -l -t set,get,lpush -d 128 -r 100000\n"
    "StandardOutput=null\nRestart=always\n[Install]\nWantedBy=multi-user.target\n",
}

# allowed is of the group; other is anybody.
USERS = (
    'u allowed 2001 - /home/allowed\nu other 2002 - /home/other\nm allowed dataspace\n'
)

# As README.md has it; the container has a network of its own.
TCP = "127.0.0.1:9170"

CHECKS = []


class NotRun(Exception):
    """A fact cannot be held here."""


def fact(check):
    """Registers a check; they run in the order in which they stand here."""
    CHECKS.append(check)
    return check


def prepare(machine, repository, binary, deb):
    """Installs the service, and what it is to profile."""
    machine.write("/etc/sysusers.d/test.conf", USERS)
    for name, text in UNITS.items():
        machine.write(f"/etc/systemd/system/{name}", text)
    source = repository / "tests/programs/chase.c"
    program = machine.root / "opt/chase"
    subprocess.run(["gcc", "-O2", "-g", "-o", program, source], check=True)
    # A program that only its owner can read, where no service may look but for reading it.
    home = machine.root / "home/other"
    home.mkdir(parents=True)
    shutil.copy(program, home / "chase")
    os.chown(home, 2002, 2002)
    os.chown(home / "chase", 2002, 2002)
    home.chmod(0o700)
    (home / "chase").chmod(0o700)
    privilege.prepare(machine, source)
    machine.has_package = deb is not None
    documented = (repository / "systemd/README.md").read_text()
    machine.network = re.search(r"```ini\n\[Service\]\n(.*?)```", documented, re.DOTALL).group(1)
    if deb:
        shutil.copy(deb, machine.root / "root/dataspace.deb")
        code, said = machine.chroot("dpkg", "--install", "/root/dataspace.deb")
        assert code == 0, f"the package does not install: {said}"
    else:
        words = [str(binary), "install-units", "--root", str(machine.root)]
        said = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
        again = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
        assert "wrote" in said and "wrote" not in again, f"a second time changes nothing: {again}"
    with open(machine.root / "etc/dataspace/dataspace.toml", "a") as file:
        file.write(CONFIGURATION)
    enable = ["systemctl", f"--root={machine.root}", "enable", "dataspace.socket", *UNITS]
    subprocess.run(enable, stderr=subprocess.DEVNULL, check=True)


def check(machine, only):
    """Checks all facts; gives how many hold, do not, and did not run."""
    counts = {"ok": 0, "FAILED": 0, "not run": 0}
    for one in CHECKS:
        name = one.__name__.replace("_", " ")
        if only and only not in name:
            continue
        try:
            said, state = one(machine), "ok"
        except NotRun as why:
            said, state = str(why), "not run"
        except AssertionError as wrong:
            said, state = str(wrong), "FAILED"
        except Exception:
            said, state = traceback.format_exc(), "FAILED"
        counts[state] += 1
        print(f"{state:7}  {name}: {said}", flush=True)
    if counts["FAILED"]:
        print(machine.run("journalctl", "--no-pager", "-u", "dataspace*", "-n", "80").out)
    return counts


def show(machine, unit, *names):
    """Properties of a unit, in the order in which they are asked for."""
    out = machine.run("systemctl", "show", unit, "-p", ",".join(names)).out
    found = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
    values = [found.get(name, "") for name in names]
    return values[0] if len(values) == 1 else values


def asked(machine, user, *words):
    ran = machine.run(*words, user=user)
    try:
        return json.loads(ran.out.splitlines()[-1])
    except (ValueError, IndexError):
        return None


def sessions(machine, user=None):
    answer = asked(machine, user, "dataspace", "sessions", "--json") or {"sessions": []}
    return {one["name"] or one["id"]: one for one in answer["sessions"]}


def snapshot(machine, session, user=None):
    words = ["dataspace", "top", "--connect", "--session", session, "--json", "--duration", "0.2"]
    return asked(machine, user, *words)


def sampled(machine, session, kind, n):
    """A snapshot whose accounts have `n` samples of a kind, and how long that took."""

    def enough():
        found = snapshot(machine, session)
        return found if found and found["accounting"][kind] >= n else None

    return until(f"{n} samples of session {session}, {kind}", enough)


def kernel_count(machine, session):
    found = snapshot(machine, session)
    return found["accounting"]["kernel"] if found else -1


def balance(found):
    accounts = found["accounting"]
    right = accounts["attributed"] + accounts["not_memory"]
    right += sum(accounts["unknown"].values()) + sum(accounts["lost"].values())
    assert accounts["kernel"] == right, f"accounts do not balance: {accounts}"
    return accounts


def of_program(accounts):
    """Samples that are not the kernel's own."""
    return accounts["kernel"] - accounts["unknown"].get("kernel", 0)


def journal(machine, *matches):
    machine.run("journalctl", "--sync")
    ran = machine.run("journalctl", "--no-pager", "-o", "json", "-u", "dataspace.service", *matches)
    return [json.loads(line) for line in ran.out.splitlines()]


FILES = ["dataspace.service", "dataspace.socket", "dataspace-control.socket", "dataspace-worker.socket",
         "dataspace-worker@.service"]


@fact
def the_units_are_clean(machine):
    ran = machine.run("systemd-analyze", "verify", *FILES)
    assert ran.code == 0 and not (ran.out + ran.err).strip(), f"{ran.code}: {ran.out}{ran.err}"
    return "systemd-analyze verify says nothing"


@fact
def little_is_left_open(machine):
    ran = machine.run("systemd-analyze", "security", "--no-pager", "dataspace.service")
    exposure = float(re.search(r"exposure level for \S+: ([\d.]+)", ran.out).group(1))
    assert exposure <= 1.5, f"systemd-analyze security: {exposure}"
    version = machine.run("systemctl", "--version").out.splitlines()[0]
    return f"systemd-analyze security {exposure} (at most 1.5), {version}"


@fact
def nobodys_memory_can_be_written(machine):
    allowed = show(machine, "dataspace", "SystemCallFilter").split()
    assert "perf_event_open" in allowed, f"no list of what is allowed: {allowed}"
    kept = {"process_vm_writev", "process_madvise", "kcmp", "userfaultfd", "ptrace"} & set(allowed)
    assert not kept, f"the unit lets it call {kept}"
    return f"{len(allowed)} system calls, none of which writes to another process"


@fact
def the_first_client_starts_it(machine):
    before = [show(machine, unit, "ActiveState") for unit in ("dataspace.socket", "dataspace")]
    assert before == ["active", "inactive"], f"socket and service are {before}"
    ran = machine.run("dataspace", "status", "--json")
    assert ran.code == 0, f"status exits with {ran.code}: {ran.err}"
    # Type=notify: it is active from READY=1 on.
    kind, state, pid = show(machine, "dataspace", "Type", "ActiveState", "MainPID")
    assert (kind, state) == ("notify", "active"), (kind, state)
    version = json.loads(ran.out)["version"]
    return f"version {version} answered after {ran.took:.2f} s, pid {pid}, notified ready"


@fact
def those_who_see_all_have_a_socket_of_their_own(machine):
    control = "/run/dataspace/dataspace.sock.control"
    rights = machine.run("stat", "-c", "%a %U %G", control).out.strip()
    assert rights == "660 root dataspace", rights
    ran = machine.run("dataspace", "status", "--socket", control)
    assert ran.code == 0, f"status exits with {ran.code}: {ran.err}"
    return f"{control} is {rights}, and answers"


@fact
def it_runs_as_a_user_with_what_it_needs(machine):
    pid = show(machine, "dataspace", "MainPID")
    status = machine.run("cat", f"/proc/{pid}/status").out
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    held = int(fields["CapEff"], 16)
    wanted = sum(1 << BITS[name] for name in privilege.CAPABILITIES)
    user = machine.run("stat", "-c", "%U", f"/proc/{pid}").out.strip()
    oom = machine.run("cat", f"/proc/{pid}/oom_score_adj").out.strip()
    assert user == "dataspace" and held == wanted, f"{user} with {held:#x}"
    assert fields["CapBnd"] == fields["CapEff"] and fields["NoNewPrivs"] == "1", fields
    assert int(oom) >= 500, f"oom_score_adj is {oom}"
    limits = machine.run("cat", f"/proc/{pid}/limits").out
    locked = re.search(r"Max locked memory +(\S+)", limits).group(1)
    return f"user {user}, capabilities {held:#x}, oom_score_adj {oom}, may lock {locked} bytes"


@fact
def it_profiles_redis_under_load(machine):
    found, took = sampled(machine, "redis", "kernel", 300)
    accounts = balance(found)
    assert "redis-server.service" in found["target"]["description"], found["target"]
    event = found["events"][0]["name"]
    return f"{accounts['kernel']} samples of {event} after {took:.1f} s, all accounted for"


WORKERS = ["pgrep", "-f", "^/usr.*/dataspace worker$"]


@fact
def a_worker_has_no_privilege(machine):
    until("a worker runs", lambda: machine.run(*WORKERS).code == 0)
    pid = machine.run(*WORKERS).out.split()[0]
    until("it has given all up", lambda: "Seccomp:\t2" in machine.run("cat", f"/proc/{pid}/status").out)
    lines = machine.run("cat", f"/proc/{pid}/status").out.splitlines()
    status = dict(line.split(":", 1) for line in lines if ":" in line)
    held = {name: status[name].strip() for name in status if name.startswith("Cap")}
    assert set(held.values()) == {"0000000000000000"}, f"it holds {held}"
    assert status["NoNewPrivs"].strip() == "1"
    uid = int(status["Uid"].split()[0])
    own = int(machine.run("id", "-u", "dataspace").out)
    assert uid not in (0, own), f"it is user {uid}"
    ran = machine.run("systemd-analyze", "security", "--no-pager", "dataspace-worker@test.service")
    exposure = float(re.search(r"exposure level for \S+: ([\d.]+)", ran.out).group(1))
    assert exposure <= 1.0, f"systemd-analyze security: {exposure}"
    return f"user {uid}, no capability, seccomp 2; systemd-analyze security {exposure} (at most 1.0)"


@fact
def it_names_the_objects_of_a_program_with_debug_information(machine):
    found, _ = sampled(machine, "chase", "attributed", 200)
    n = of_program(balance(found))
    samples = {one["object"]: one["metrics"]["all"]["samples"] for one in found["objects"]}
    # Its loop touches nothing else.
    share = samples.get(NEXT, 0) / n
    assert share > 0.9, f"{NEXT} has {share:.1%} of {samples}"
    return f"{NEXT} has {share:.1%} of {n} samples"


@fact
def it_finds_a_restarted_service_again(machine):
    took = []
    for unit, session in [("chase.service", "chase"), ("redis-server.service", "redis")]:
        assert machine.run("systemctl", "restart", unit).code == 0
        # All of the old one's samples are in by then: what comes more is of the new one.
        before = kernel_count(machine, session)
        assert before >= 0, f"session {session} has no snapshot"
        began = int(show(machine, unit, "ExecMainStartTimestampMonotonic")) / 1e6
        until(f"samples of the new {unit}", lambda: kernel_count(machine, session) > before + 20)
        took.append(time.clock_gettime(time.CLOCK_MONOTONIC) - began)
    return f"20 samples of the new chase after {took[0]:.2f} s, of redis after {took[1]:.2f} s"


@fact
def members_of_the_group_see_all(machine):
    seen = sessions(machine, "allowed")
    assert {"redis", "chase"} <= set(seen), seen
    words = ["top", "--connect", "--session", "chase", "--once", "--duration", "1"]
    ran = machine.run("dataspace", *words, user="allowed")
    assert ran.code == 0 and "cell.next" in ran.out, f"{ran.code}: {ran.err}{ran.out}"
    return f"sessions {', '.join(sorted(map(str, seen)))}; top --connect shows them"


@fact
def others_are_refused(machine):
    assert not sessions(machine, "other"), "a stranger sees sessions"
    words = ["top", "--connect", "--session", "chase", "--once", "--duration", "1"]
    top = machine.run("dataspace", *words, user="other")
    attach = machine.run("dataspace", "attach", "-u", "redis-server", user="other")
    assert top.code == 1 and "no session chase" in top.err, f"{top.code}: {top.err}"
    assert attach.code == 3, f"{attach.code}: {attach.err}"
    return f"top exits with {top.code}, attach with {attach.code}: {attach.err.strip()}"


@fact
def others_profile_what_is_their_own(machine):
    privilege.start(machine)
    pid = show(machine, "own.service", "MainPID")
    attach = machine.run("dataspace", "attach", "-p", pid, "--json", user="other")
    assert attach.code == 0, f"{attach.code}: {attach.err}"
    session = str(json.loads(attach.out)["id"])

    def named():
        found = snapshot(machine, session, "other") or {"objects": []}
        objects = {one["object"]: one["metrics"]["all"]["samples"] for one in found["objects"]}
        return objects.get(NEXT, 0) >= 50 and found

    found, took = until("50 named samples of his own program", named)
    balance(found)
    machine.run("dataspace", "detach", session, user="other")
    return f"a program only he may read is named after {took:.1f} s"


@fact
def the_journal_has_fields(machine):
    by_user = ("DATASPACE_UID=2002", "PRIORITY=4")
    refused, _ = until("a refusal of uid 2002 with priority 4", lambda: journal(machine, *by_user))
    entry = refused[-1]
    wanted = ["DATASPACE_PID", "DATASPACE_REASON", "DATASPACE_WISH"]
    assert all(name in entry for name in wanted), entry
    attached = journal(machine, "DATASPACE_NAME=chase", "PRIORITY=6")
    assert any("DATASPACE_SESSION" in one for one in attached), attached
    return f"{entry['MESSAGE']}: DATASPACE_REASON={entry['DATASPACE_REASON']}, PRIORITY=4"


@fact
def it_reads_its_configuration_again(machine):
    machine.write(
        "/etc/dataspace/dataspace.toml",
        CONFIGURATION + '[[session]]\nname = "load"\nunit = "load"\n',
    )
    pid = show(machine, "dataspace", "MainPID")
    assert machine.run("systemctl", "reload", "dataspace").code == 0
    _, took = until("the session that was added", lambda: "load" in sessions(machine))
    assert show(machine, "dataspace", "MainPID") == pid
    return f"a session more after {took:.2f} s, the same process"


@fact
def a_wrong_configuration_is_told_once(machine):
    path = machine.root / "etc/dataspace/dataspace.toml"
    right = path.read_text()
    path.write_text(right + "colour = 1\n")
    ran = machine.run("systemctl", "restart", "dataspace.service")
    state, n = show(machine, "dataspace", "ActiveState", "NRestarts")
    assert ran.code != 0 and (state, n) == ("failed", "0"), f"{ran.code}, {state}, {n} restarts"
    said = [entry["MESSAGE"] for entry in journal(machine, "PRIORITY=3")]
    said = [line for line in said if "dataspace.toml:" in line]
    assert said, "no failure of priority 3 names the file"
    path.write_text(right)
    machine.run("systemctl", "reset-failed", "dataspace.service", "dataspace.socket")
    ran = machine.run("systemctl", "start", "dataspace.socket", "dataspace.service")
    assert ran.code == 0, ran.err
    return f"it is not started again; PRIORITY=3: {said[-1]}"


@fact
def it_listens_on_tcp_where_it_is_let(machine):
    path = machine.root / "etc/dataspace/dataspace.toml"
    right = path.read_text()
    token = "/etc/dataspace/token"
    machine.write(token, secrets.token_hex(16), mode=0o600)
    path.write_text(f'{right}[tcp]\nlisten = "{TCP}"\ntoken_file = "{token}"\n')
    ran = machine.run("systemctl", "restart", "dataspace.service")
    said = [one["MESSAGE"] for one in journal(machine, "PRIORITY=3") if TCP in one["MESSAGE"]]
    assert ran.code != 0 and said, f"without the drop-in: {ran.code}, {said}"
    machine.run("systemctl", "reset-failed", "dataspace.service", "dataspace.socket")
    privilege.restart(machine, machine.network)
    client = ["dataspace", "sessions", "--connect", f"http://{TCP}"]
    allowed = machine.run(*client, "--token-file", token)
    stranger = machine.run(*client)
    path.write_text(right)
    privilege.restart(machine, None)
    assert allowed.code == 0 and "redis" in allowed.out, f"{allowed.code}: {allowed.err}"
    assert stranger.code == 3, f"without a token: {stranger.code}: {stranger.err}"
    return f"by the drop-in of systemd/README.md; without: {said[-1]}"


@fact
def it_is_back_after_a_kill(machine):
    pid = show(machine, "dataspace", "MainPID")
    machine.run("kill", "-KILL", pid)

    def again():
        now, state = show(machine, "dataspace", "MainPID", "ActiveState")
        found = sessions(machine)
        is_back = now not in ("0", pid) and state == "active" and {"redis", "chase"} <= set(found)
        return found if is_back else None

    found, took = until("it is restarted with its sessions", again)
    return f"{len(found)} sessions again after {took:.2f} s"


@fact
def it_stops_in_time(machine):
    ran = machine.run("systemctl", "stop", "dataspace.service")
    result, code = show(machine, "dataspace", "Result", "ExecMainStatus")
    assert (result, code) == ("success", "0"), (result, code)
    left = machine.run("pgrep", "-x", "dataspace").out.split()
    assert not left, f"processes are left: {left}"
    return f"after {ran.took:.2f} s, with code {code}; no process is left"


@fact
def the_watchdog_restarts_it(machine):
    assert machine.run("dataspace", "status").code == 0, "the socket starts it again"
    pid, before, limit = show(machine, "dataspace", "MainPID", "NRestarts", "WatchdogUSec")
    machine.run("kill", "-STOP", pid)

    def again():
        now, state, n = show(machine, "dataspace", "MainPID", "ActiveState", "NRestarts")
        return now not in ("0", pid) and state == "active" and int(n) > int(before)

    _, took = until("the watchdog restarts it", again)
    reasons = machine.run("journalctl", "--no-pager", "-u", "dataspace", "-o", "cat").out
    assert "Watchdog timeout" in reasons, "systemd does not speak of its watchdog"
    until("its sessions", lambda: {"redis", "chase"} <= set(sessions(machine)))
    return f"WatchdogSec is {limit}, it was back after {took:.1f} s with its sessions"


def attached(machine, unit):
    """A session on a unit, its samples and what is said beside them."""
    ran = machine.run("dataspace", "attach", "-u", unit)
    assert ran.code == 0, f"attach -u {unit}: {ran.code}: {ran.err}"
    session = re.search(r"session (\d+)", ran.out).group(1)
    found, _ = sampled(machine, session, "kernel", 100)
    balance(found)
    # What rings may lock is one sum for all sessions, and where root itself has not
    # CAP_SYS_RESOURCE no unit raises it.
    machine.run("dataspace", "detach", session)
    return found, found.get("warnings", [])


def is_named(machine, unit):
    found, warnings = attached(machine, unit)
    named = found["accounting"]["attributed"] > of_program(found["accounting"]) / 2
    is_said = any(privilege.UNREADABLE in warning for warning in warnings)
    assert named != is_said, f"{unit}: {found['accounting']} {warnings}"
    return named


@fact
def with_all_capabilities_all_is_named(machine):
    privilege.start(machine)
    found = {unit: is_named(machine, unit) for unit in privilege.PROGRAMS}
    assert all(found.values()), f"named: {found}"
    return "also one that only its owner may read, one with a deleted library, one in a PrivateTmp="


@fact
def without_perfmon_units_wait_and_say_so(machine):
    privilege.without(machine, "CAP_PERFMON")
    says = "forbids events of control groups without CAP_PERFMON"
    until(
        "the session waits",
        lambda: says in str(sessions(machine).get("chase", {}).get("detail")),
    )
    attach = machine.run("dataspace", "attach", "-u", "own")
    assert attach.code == 3 and says in attach.err, f"attach: {attach.code}: {attach.err}"
    top = privilege.command(machine, "CAP_PERFMON", "top", "-a", "--once", "--duration", "1")
    assert top.code == 3 and "without CAP_PERFMON" in top.err, f"top: {top.code}: {top.err}"
    privilege.check_doctor(machine, "CAP_PERFMON")
    return f"sessions wait: {says}; attach exits with {attach.code}, top with {top.code}"


def loses(machine, capability, lost):
    """Without the capability just the programs `lost` are not named."""
    privilege.without(machine, capability)
    found = {unit: is_named(machine, unit) for unit in privilege.PROGRAMS}
    assert {unit for unit, named in found.items() if not named} == set(lost), f"named: {found}"
    privilege.check_doctor(machine, capability)
    return f"{', '.join(lost)} without a name: {privilege.UNREADABLE}"


@fact
def without_sys_ptrace_no_file_of_another_namespace_is_read(machine):
    return loses(machine, "CAP_SYS_PTRACE", ["replaced", "private"])


@fact
def without_checkpoint_restore_no_deleted_library_is_read(machine):
    return loses(machine, "CAP_CHECKPOINT_RESTORE", ["replaced"])


@fact
def without_dac_read_search_no_private_program_is_read(machine):
    said = loses(machine, "CAP_DAC_READ_SEARCH", ["own", "replaced"])
    pid = show(machine, "chase.service", "MainPID")
    words = ["top", "-p", pid, "-e", "syscalls:sys_enter_read", "--once", "--duration", "1"]
    top = privilege.command(machine, "CAP_DAC_READ_SEARCH", *words)
    assert top.code in (3, 4), f"a tracepoint: {top.code}: {top.err}"
    return f"{said}; tracepoints: exit code {top.code}"


@fact
def without_locked_memory_sessions_wait_and_say_so(machine):
    privilege.restart(machine, None)
    workers = "dataspace-worker@.service"
    privilege.restart(machine, "LimitMEMLOCK=64K\n", workers)
    says = "RLIMIT_MEMLOCK is 65536 bytes"
    n_attached = 0
    while True:
        ran = machine.run("dataspace", "attach", "-a")
        if ran.code != 0:
            break
        n_attached += 1
        assert n_attached < 16, "rings take no locked memory"
    assert ran.code == 3 and says in ran.err, f"attach: {ran.code}: {ran.err}"
    privilege.restart(machine, None, workers)
    return f"attach exits with {ran.code}: {ran.err.strip()}"


@fact
def it_is_there_again_when_it_is_installed_again(machine):
    if not machine.has_package:
        raise NotRun("it was not installed by the package (--deb)")
    for words in (["--remove", "dataspace"], ["--install", "/root/dataspace.deb"]):
        ran = machine.run("dpkg", *words)
        assert ran.code == 0, f"dpkg {words}: {ran.code}: {ran.out}{ran.err}"
    status = machine.run("dataspace", "status")
    assert status.code == 0, f"{status.code}: {status.err}"
    return "the socket listens, and a client starts it"


@fact
def it_goes_when_it_is_removed(machine):
    if not machine.has_package:
        raise NotRun("it was not installed by the package (--deb)")
    ran = machine.run("dpkg", "--purge", "dataspace")
    assert ran.code == 0, f"{ran.code}: {ran.out}{ran.err}"
    states = [show(machine, unit, "LoadState") for unit in ("dataspace.socket", "dataspace")]
    left = machine.run("pgrep", "-x", "dataspace").out.split()
    assert states == ["not-found"] * 2 and not left, f"{states}, processes {left}"
    return "dpkg --purge: no unit and no process is left"
