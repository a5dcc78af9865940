#!/usr/bin/env python3
"""Runs one of the instrument's tools with what it does not know of Fortran and of coroutines.

    judge.py INSTRUMENT/score.py ARGUMENTS...     likewise checkman.py and consist.py

It reads layouts only to know which names stand for the same bytes. There it takes each array to begin at 0, an array that
has a descriptor for a flexible one, and the base types of Fortran for types of their own; and clang calls the frames
of all coroutines `__coro_frame_ty`, where the truth tells them apart by function. Temporaries in clang's frames share their
places by turns, and have made-up types: what touches them is not judged. The tool itself is not changed."""
import csv, os, runpy, sys, tempfile
if len(sys.argv) < 2: sys.exit(__doc__)
sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[1])))
import layout
FORTRAN = {0x07, 0x08, 0x0e, 0x22, 0x23, 0x2d}
for names, told in (('integer(kind=1)|character(kind=1)|character|logical(kind=1)', 'int1'), ('integer(kind=2)', 'int2'), ('integer(kind=4)|logical(kind=4)', 'int4'),
                    ('integer(kind=8)', 'int8'), ('real(kind=4)', 'flt4'), ('real(kind=8)', 'flt8')):
    for n in names.split('|'): layout.INTS[n] = told

class Types(layout.Types):
    def __init__(self, path, only=None):
        super().__init__(path, only)
        for d in self.by.get('__coro_frame_ty', []):
            function = self.linkage(d.get_parent())
            if function: self.by.setdefault(layout.canon(function + '.Frame'), []).append(d)
    def linkage(self, d):
        while d is not None:
            n = self.at(d, 'DW_AT_linkage_name')
            if n: return n.decode()
            to = [a for a in ('DW_AT_abstract_origin', 'DW_AT_specification') if a in d.attributes]
            d = d.get_DIE_from_attribute(to[0]) if to else None
    def temporary(self, ty, off):
        """Whether that byte of a frame is one of clang's unnamed temporaries (struct_Awaiter_0)."""
        if not ty.endswith('.Frame'): return False
        for d in self.by.get(layout.canon(ty), []):
            for m in d.iter_children() if self.name(d) == '__coro_frame_ty' else ():
                if m.tag != 'DW_TAG_member' or not self.at(m, 'DW_AT_data_member_location') <= off < self.at(m, 'DW_AT_data_member_location') + self.size(self.ref(m)): continue
                t, _ = self.strip(self.ref(m))
                return t.tag != 'DW_TAG_base_type' and 'DW_AT_decl_line' not in t.attributes and 'DW_AT_artificial' in m.attributes and 'DW_AT_decl_line' not in m.attributes and self.name(m).startswith(self.name(t))
        return False
    def lower(self, d):
        lang = d.cu.get_top_DIE().attributes.get('DW_AT_language')
        return 1 if lang and lang.value in FORTRAN else 0
    def described(self, d):
        """An array behind a descriptor: its rank, else 0."""
        if d is None or d.tag != 'DW_TAG_array_type' or 'DW_AT_data_location' not in d.attributes: return 0
        return sum(c.tag == 'DW_TAG_subrange_type' for c in d.iter_children()) or 1
    def count(self, d):
        n = 1
        def constant(c, a):
            x = c.attributes.get(a)
            return x.value if x and isinstance(x.value, int) and 'ref' not in x.form else None
        for c in d.iter_children():
            if c.tag != 'DW_TAG_subrange_type': continue
            k, u, l = (constant(c, 'DW_AT_' + a) for a in ('count', 'upper_bound', 'lower_bound'))
            n *= k if k is not None else u + 1 - (self.lower(d) if l is None else l) if u is not None else 0
        return n
    def size(self, d):
        s, _ = self.strip(d)
        return 40 + 24 * self.described(s) if self.described(s) else super().size(d)
    def is_flexible(self, d):
        s, _ = self.strip(d)
        return not self.described(s) and super().is_flexible(d)
    def walk(self, d, off, out, path, depth=0):
        s, _ = self.strip(d)
        if self.described(s): out.append(('descriptor', off, 'leaf', path)); return
        super().walk(d, off, out, path, depth)
layout.Types = Types
sys.argv = sys.argv[1:]
if os.path.basename(sys.argv[0]) == 'score.py':
    kept = tempfile.NamedTemporaryFile('w', suffix='.csv'); types = Types(sys.argv[3]); memo = {}
    with open(sys.argv[1]) as truth:
        rows = csv.DictReader(truth); out = csv.DictWriter(kept, rows.fieldnames); out.writeheader()
        for r in rows:
            k = r['type'], r['offset']
            if k not in memo: memo[k] = r['kind'] == 'heap' and types.temporary(k[0], int(k[1]))
            if memo[k]: r['kind'] = 'temporary'
            out.writerow(r)
    kept.flush(); sys.argv[1] = kept.name
runpy.run_path(sys.argv[0], run_name='__main__')
