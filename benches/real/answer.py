"""What the two tools say of each instruction or sample."""

import json
import os
import subprocess

# What the peer prints in place of a type.
PEER_UNKNOWN = ("(unknown", "(stack operation)", "(stack canary)", "(static call)")

# An answer of perf whose line lost its IP: it is long, so it is a name.
CUT = ("(cut)", "(a long name)")


def _peer_listing(peer, recording):
    """What perf prints; kept beside the recording, for on large files it takes minutes."""
    kept = recording.removesuffix(".data") + ".peer.txt"
    if os.path.exists(kept) and os.path.getmtime(kept) > os.path.getmtime(recording):
        with open(kept, encoding="utf-8", errors="replace") as file:
            return file.read()
    command = [f"{peer}/perf", "report", "-g", "none", "--no-children", "-v", "-n", "-t", "\t",
               "-i", recording, "--stdio",
               f"--objdump={peer}/objdump", "-s", "type,typeoff,dso,sym,symoff"]
    listing = subprocess.run(command, check=True, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, errors="replace").stdout
    with open(kept, "w", encoding="utf-8") as file:
        file.write(listing)
    return listing


def peer_answers(peer, recording):
    """perf's answer by (path, file offset): type and field. It resolves by IP, so one for each."""
    answers, samples = {}, 0
    for line in _peer_listing(peer, recording).splitlines():
        columns = [column.strip() for column in line.split("\t")]
        if line.startswith("#") or len(columns) < 2:
            continue
        samples += int(columns[1])
        # With -v the symbol's column begins with the IP in the file. With -t perf cuts lines of long
        # names; `CUT` stands for what was on them.
        if len(columns) < 6 or not columns[5]:
            continue
        site = columns[4], int(columns[5].split()[0], 16)
        answer = columns[2], columns[3]
        # A site is printed twice where it has two answers: the better one counts.
        if site not in answers or is_peer_unknown(answers[site]):
            answers[site] = answer
    return answers, samples


def is_peer_unknown(answer):
    """Whether the peer left the operand without a name."""
    return answer[0].startswith(PEER_UNKNOWN)


def our_answers(dataspace, recording, paths):
    """Our script lines by (time, thread)."""
    command = [dataspace, "script", "-i", recording, "--skid", "0"]
    command += ["--paths", paths] if paths else []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    answers = {}
    for line in process.stdout:
        answer = json.loads(line)
        answers[answer["time_ns"], answer["tid"]] = answer
    if process.wait() != 0:
        raise SystemExit(f"{' '.join(command)} failed")
    return answers


def is_our_unknown(answer):
    """Whether we left it without a name. `<Stack>` off the stack is none either."""
    return answer["object"] is None or answer["object"].startswith(("<Stack>", "<Unknown>"))
