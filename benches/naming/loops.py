#!/usr/bin/env python3
"""Loops over arrays in all the places where arrays can be: each function's only `short` is its truth.

  loops.py source [SEED] > loops.c          a C program of some 1,200 functions, which runs until it is ended
  dataspace script -i RECORDING | loops.py judge

Build it with a compiler and flags of choice, record it with the instrument of README.md (`step.sh`), and judge what
`dataspace script --skid 0` names: right, unknown or WRONG, and by which kind of array and loop.
"""
import collections
import json
import random
import re
import sys

HEADERS = ["long n;", "int n;", "long n, m;", "int n; char c; int k;", "void *p; int n; long q[3];", "double d; int n;"]
ELEMENTS = [
    "short v; unsigned char w;", "long w; short v;", "short v; int w; long x;", "long w[2]; short v;",
    "int w[8]; short v; int x[3];", "double w; short v; float x;", "void *w; void *x; short v;", "char w[13]; short v;", "short v;",
]
LOOPS = {
    "up": "for (int i = 0; i < n; i++) s = s * 31 + {i};",
    "down": "for (int i = n; i-- > 0;) s = s * 31 + {i};",
    "both": "for (int i = 1; i < n; i++) {i} = (short)({i - 1} * 3 + i);",
    "two": "for (long i = 0; i + 1 < n; i += 2) s = s * 31 + ({i} ^ {i + 1});",
    "at": "s = {n - 1} + {(n * 7u) % N};",
    "sort": "for (int i = 1; i < n; i++) for (int j = i; j > 0 && {j - 1} > {j}; j--) "
            "{{ short t = {j}; {j} = {j - 1}; {j - 1} = t; }}",
    "search": "int lo = 0, hi = n; while (lo < hi) {{ int m = (lo + hi) / 2; if ({m} < 3) lo = m + 1; else hi = m; }} s = lo;",
}
POINTERS = {
    "to": "for (ELEMENT *e = FIRST; e < FIRST + n; e++) s = s * 31 + e->v;",
    "back": "for (ELEMENT *e = FIRST + n; e-- > FIRST;) s = s * 31 + e->v;",
}


def source(seed):
    choose = random.Random(seed)
    functions, calls, begin = [], [], []

    def function(name, takes, body, gives):
        functions.append(f"NOI long {name}({takes}) {{ long s = 0; {body} return s; }}")
        calls.append(f"s += {name}({gives});")

    for k in range(14):
        header, element, tag = choose.choice(HEADERS), choose.choice(ELEMENTS), f"t{k}_e"
        each = f"struct {tag}"
        functions.append(
            f"{each} {{ {element} }};\n"
            f"struct t{k}_in {{ {header} {each} in[N]; int mid; {each} more[N]; }};\n"
            f"struct t{k}_ptrs {{ {header} {each} *to[N]; }};\n"
            f"struct t{k}_flex {{ {header} {each} *to[]; }};\n"
            f"struct t{k}_open {{ {header} {each} items[]; }};\n"
            f"struct t{k}_member {{ {header} {each} *list; }};\n"
            f"struct t{k}_grid {{ {header} {each} grid[N][5]; }};\n"
            f"{each} g{k}[N + 2]; static {each} gg{k}[N][4];"
        )
        begin.append(
            f"{each} *a{k} = calloc(N + 4, sizeof *a{k}); struct t{k}_in *in{k} = calloc(3, sizeof *in{k});\n"
            f"struct t{k}_ptrs *ptrs{k} = calloc(1, sizeof *ptrs{k}); struct t{k}_flex *flex{k} = calloc(1, sizeof *flex{k} + N * 8);\n"
            f"for (int i = 0; i < N; i++) ptrs{k}->to[i] = flex{k}->to[i] = a{k} + i;\n"
            f"struct t{k}_member *member{k} = calloc(1, sizeof *member{k}); member{k}->list = a{k};\n"
            f"struct t{k}_open *open{k} = calloc(1, sizeof *open{k} + N * sizeof({each}));\n"
            f"struct t{k}_grid *grid{k} = calloc(1, sizeof *grid{k});"
        )
        # The kind, its argument's type and value, an element's place, and where a pointer begins.
        kinds = [
            ("heap", each, f"a{k}", "o[@].v", "o"),
            ("in", f"struct t{k}_in", f"in{k}", "o->in[@].v", "o->in"),
            ("more", f"struct t{k}_in", f"in{k}", "o->more[@].v", "o->more"),
            ("objs", f"struct t{k}_in", f"in{k}", "o[(@) & 1].in[(@) >> 1].v", None),
            ("ptrs", f"struct t{k}_ptrs", f"ptrs{k}", "o->to[@]->v", None),
            ("flex", f"struct t{k}_flex", f"flex{k}", "o->to[@]->v", None),
            ("open", f"struct t{k}_open", f"open{k}", "o->items[@].v", "o->items"),
            ("member", f"struct t{k}_member", f"member{k}", "o->list[@].v", "o->list"),
            ("grid", f"struct t{k}_grid", f"grid{k}", "o->grid[@][n % 5].v", None),
            ("glob", None, None, f"g{k}[@].v", f"g{k}"),
            ("gg", None, None, f"gg{k}[@][n & 3].v", None),
        ]
        for kind, takes, gives, place, first in kinds:
            takes, gives = (f"{takes} *o, int n", f"{gives}, N") if takes else ("int n", "N")
            for name, loop in LOOPS.items():
                loop = loop.replace("{{", "\1").replace("}}", "\2")
                body = re.sub(r"\{([^{}]*)\}", lambda index: place.replace("@", index[1]), loop)
                function(f"t{k}_{kind}_{name}", takes, body.replace("\1", "{").replace("\2", "}"), gives)
            for name, loop in POINTERS.items() if first else ():
                body = loop.replace("ELEMENT", each).replace("FIRST", first)
                function(f"t{k}_{kind}_{name}", takes, body, gives)
    print("#include <stdlib.h>\n#define N 12\n#define NOI __attribute__((noinline))", *functions, sep="\n")
    print("int main(void) { long s = 0;", *begin, "for (long k = 0; k < 2000000000; k++) {", *calls, "}\nreturn s; }", sep="\n")


def judge():
    verdicts, misses = collections.Counter(), collections.Counter()
    for line in sys.stdin:
        sample = json.loads(line)
        symbol, name = sample.get("symbol") or "", sample["object"] or ""
        found = re.match(r"(t\d+_)(\w+?_\w+)", symbol)
        if sample["size"] != 2 or not found:
            continue
        is_right = found[1] in name and re.search(r"\{short(_int)? v\}$", name)
        verdict = "unknown" if sample["reason"] else "right" if is_right else "WRONG"
        verdicts[verdict] += 1
        if verdict != "right":
            misses[verdict, found[2], name if verdict == "WRONG" else sample["reason"]] += 1
    total = sum(verdicts.values()) or 1
    for verdict, count in verdicts.most_common():
        print(f"{count:7} {100 * count / total:5.1f} %  {verdict}")
    for (verdict, where, what), count in misses.most_common(40):
        print(f"{count:7}  {verdict:8} {where:14} {what}")


if sys.argv[1:2] == ["source"]:
    source(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
elif sys.argv[1:] == ["judge"]:
    judge()
else:
    sys.exit(__doc__)
