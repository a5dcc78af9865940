"""Unknown samples of both tools at the reported IP, and answers drawn at random for a person to check."""

import random
from collections import Counter

import answer
import instruction
import source

# The same draw each time, as long as the recording is the same.
SEED = 2026


class Comparison:
    """Both tools' answers to the judged samples of one recording."""

    def __init__(self, program, recording, peer, dataspace, paths, samples, total):
        self.program, self.total = program, total
        self.judge = instruction.Judge(samples)
        self.verdicts = Counter()
        peer_answers, peer_samples = answer.peer_answers(peer, recording)
        our_answers = answer.our_answers(dataspace, recording, paths)
        if peer_samples != total or len(our_answers) != total:
            print(f"# {program}: {total} samples, of which perf shows {peer_samples}"
                  f" and dataspace {len(our_answers)}")
        self.rows = []  # (sample, perf's answer, our answer)
        self.missing = 0
        for sample in samples:
            verdict = self.judge.verdict(sample)
            self.verdicts[verdict] += 1
            if verdict is None:
                theirs = peer_answers.get((sample.path, sample.file_offset))
                if theirs is None:
                    self.missing += 1
                    theirs = answer.CUT
                self.rows.append((sample, theirs, our_answers[sample.time_ns, sample.tid]))

    def share(self, is_unknown, rows=None):
        """Percent of the judged samples that are left unknown."""
        rows = self.rows if rows is None else rows
        return 100 * sum(map(is_unknown, rows)) / max(1, len(rows))

    def line(self):
        """One line of the table."""
        peer = self.share(peer_unknown)
        ours = self.share(our_unknown)
        scalar = self.share(peer_scalar)
        own = [row for row in self.rows if row[0].path.endswith("/" + self.program)]
        return [self.program, self.total, len(self.rows), f"{peer:.1f}", f"{ours:.1f}",
                f"{ours / peer:.3f}" if peer else "-", f"{scalar:.1f}",
                f"{self.share(our_scalar):.1f}", len(own),
                f"{self.share(peer_unknown, own):.1f}", f"{self.share(our_unknown, own):.1f}"]

    def details(self, n_misses):
        """What the samples were, our reasons, what perf printed, and our heaviest misses."""
        print(f"\n## {self.program}\n\nverdicts: "
              + ", ".join(f"{k or 'judged'} {n}" for k, n in self.verdicts.most_common()))
        if self.missing:
            print(f"cut by perf: {self.missing}")
        ours = [row[2] for row in self.rows]
        count("our reasons", (o["reason"] or o["object"] or "not_memory" for o in ours
                              if answer.is_our_unknown(o)))
        count("our evidence", (o["evidence"] for o in ours if not answer.is_our_unknown(o)))
        count("our scalars without a member or variable",
              (o["object"] for o in ours if o["object"] and o["object"].endswith(" -}")))
        count("perf's unknown", (row[1][0] for row in self.rows if peer_unknown(row)))
        count("named by", (f"perf {not peer_unknown(row)}, ours {not our_unknown(row)}"
                           for row in self.rows))
        self.misses(n_misses)

    def misses(self, n_misses):
        """The sites that we leave unknown, heaviest first."""
        sites = Counter((row[0].path, row[0].file_offset) for row in self.rows if our_unknown(row))
        example = {(row[0].path, row[0].file_offset): row for row in self.rows}
        shown = sites.most_common(n_misses)
        print(f"heaviest of {len(sites)} sites that we leave unknown (share of the judged):")
        for site, n in shown:
            sample, theirs, ours = example[site]
            decoded, address, places = self.place(sample)
            print(f"  {100 * n / len(self.rows):5.2f}% {ours['reason']} {address:#x} "
                  f"{instruction.text(decoded)} | {places[0][0]} {source.in_crate(places[0][1])} "
                  f"| perf: {theirs[1]}")

    def place(self, sample):
        """The instruction, its address in the file's own terms, and its source lines."""
        load_object = self.judge.load_object(sample.path)
        address = load_object.svma(sample.file_offset)
        places = source.lines(sample.path, [address]).get(address) or [("?", "??:0")]
        return load_object.decode(sample.file_offset, address), address, places

    def draw(self, n_drawn):
        """Samples at random, no site twice, with all that a person needs to judge them."""
        named = [row for row in self.rows if not our_unknown(row)]
        print(f"\n# {self.program}: {n_drawn} of {len(named)} named samples, seed {SEED}")
        random.Random(SEED).shuffle(named)
        drawn = {}
        for row in named:
            if len(drawn) < n_drawn:
                drawn.setdefault((row[0].path, row[0].file_offset), row)
        for number, (sample, theirs, ours) in enumerate(drawn.values(), 1):
            decoded, address, places = self.place(sample)
            name = sample.path.rpartition("/")[2]
            print(f"\n{number}. {name} {address:#x}: {instruction.text(decoded)}")
            print(f"   ours: {ours['object']} offset {ours['offset']} in {ours['type']}"
                  f" size {ours['size']} evidence {ours['evidence']}"
                  + (f" ({ours['reason']})" if ours["reason"] else ""))
            print(f"   perf: {theirs[1]}")
            for function, place in places:
                print(f"   at {function} {source.in_crate(place)}")
            print("\n".join("     " + line for line in source.around(places[0][1], 3)))
            self.code_before(sample.path, address)

    def code_before(self, path, address, n_before=10):
        """The instructions before and at `address`, decoded from the start of the function."""
        load_object = self.judge.load_object(path)
        at, name = source.symbol(path, address)
        listing = []
        while at <= address:
            decoded = load_object.decode(load_object.offset(at), at)
            if decoded.len == 0:
                break
            listing.append(f"     {at:#x} {instruction.text(decoded)}")
            at += decoded.len
        print(f"   code of {name}")
        print("\n".join(listing[-n_before:]))


def peer_unknown(row):
    """Whether perf left it unknown."""
    return answer.is_peer_unknown(row[1])


def our_unknown(row):
    """Whether we did."""
    return answer.is_our_unknown(row[2])


def peer_scalar(row):
    """Whether perf names but a type without fields, such as `u8 +0 (no field)`."""
    return not peer_unknown(row) and row[1][1].endswith("(no field)")


def our_scalar(row):
    """Whether we name neither a member nor a variable: a scalar behind a pointer."""
    ours = row[2]
    return not our_unknown(row) and not ours["member"] and not ours["variable"]


def count(title, values):
    """The most frequent values in one line."""
    values = Counter(values)
    print(f"{title}: " + (", ".join(f"{k} {n}" for k, n in values.most_common(8)) or "none"))


def table(head, lines):
    """A table for people and for Markdown."""
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for line in lines:
        print("| " + " | ".join(str(cell) for cell in line) + " |")
