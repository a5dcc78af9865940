/* Back half of a small compiler: blocks to SSA form, folding,
 * numbering of values, dead code, live ranges, registers.
 */
#include "../heap.h"
#include <assert.h>

typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned char uchar;
typedef unsigned long bits;

typedef struct BSet BSet;
typedef struct Ref Ref;
typedef struct Ins Ins;
typedef struct Phi Phi;
typedef struct Blk Blk;
typedef struct Use Use;
typedef struct Tmp Tmp;
typedef struct Con Con;
typedef struct Fn Fn;
typedef struct Name Name;
typedef struct Iv Iv;
typedef struct Op Op;

enum {
	NBit = 8 * sizeof(bits),
	NVar = 12,
	NReg = 6,
	NPtr = 1 << 14,
	NHash = 128,
};

#define BIT(n) ((bits)1 << (n))

struct BSet {
	uint nt;
	bits *t;
};

enum { RTmp, RCon, RVar, RNone };

struct Ref {
	uint type:3;
	uint val:29;
};

#define R        (Ref){RNone, 0}
#define TMP(x)   (Ref){RTmp, x}
#define CON(x)   (Ref){RCon, x}
#define VAR(x)   (Ref){RVar, x}

static inline int
req(Ref a, Ref b)
{
	return a.type == b.type && a.val == b.val;
}

enum { Oadd, Osub, Omul, Oand, Oxor, Oshl, Oclt, Ocopy, Oload, Ostore, Onop, NOp };

struct Op {
	char *name;
	uchar canfold, commutes, pinned, cost;
};

struct Ins {
	uint op:30;
	uint cls:2;
	Ref to;
	Ref arg[2];
};

struct Phi {
	Ref to;
	Ref *arg;
	Blk **blk;
	uint narg;
	int cls;
	Phi *link;
};

struct Use {
	enum { UPhi, UIns, UJmp } type;
	uint bid;
	union {
		Ins *ins;
		Phi *phi;
	} u;
};

enum { Jret, Jjmp, Jjnz };

struct Blk {
	Phi *phi;
	Ins *ins;
	uint nins;
	struct {
		short type;
		Ref arg;
	} jmp;
	Blk *s1, *s2, *link;
	uint id, visit;
	Blk *idom, *dom, *dlink;
	Blk **fron;
	uint nfron;
	Blk **pred;
	uint npred;
	BSet in[1], out[1];
	int nlive;
	int loop;
	char name[16];
};

struct Tmp {
	char name[12];
	Ins *def;
	Use *use;
	uint nuse, cuse;
	uint ndef, bid;
	uint cost;
	int slot;
	short cls, visit;
	int reg;
	int var;
	struct { int lo, hi; } live;
};

struct Con {
	enum { CUndef, CBits, CAddr } type;
	union { long i; double d; } bits;
	int flt;
};

struct Name { Ref r; Blk *b; Name *up; };

struct Iv { Tmp *t; Iv *next, *prev; };

struct Fn {
	Blk *start;
	Tmp *tmp;
	Con *con;
	int ntmp, ncon;
	uint nblk;
	Blk **rpo;
	uint maxlive, nspill, nfold, ngvn, ndead;
	char name[16];
};

static Op optab[NOp] = {
	[Oadd] = {"add", 1, 1, 0, 1}, [Osub] = {"sub", 1, 0, 0, 1}, [Omul] = {"mul", 1, 1, 0, 3}, [Oand] = {"and", 1, 1, 0, 1},
	[Oxor] = {"xor", 1, 1, 0, 1}, [Oshl] = {"shl", 1, 0, 0, 1}, [Oclt] = {"clt", 1, 0, 0, 1}, [Ocopy] = {"copy", 0, 0, 0, 1},
	[Oload] = {"load", 0, 0, 1, 4}, [Ostore] = {"store", 0, 0, 1, 4}, [Onop] = {"nop", 0, 0, 1, 0},
};
static Ins insb[256], *curi;
static void **ptr;
static uint nptr;
static Name *namel;
static Ins *gvntab[NHash];
static Blk *gvnblk[NHash];
static struct { ulong fn, ins, phi, spill, fold, gvn, dead; } stat;

/* memory of one function */

#define alloc(T, n) ((T *)note(HEAP_CALLOC(T, n)))
/* room for one more */
#define vgrow(v, T, n) do {                                   \
	if ((n) == 0 && !(v))                                 \
		(v) = alloc(T, 4);                            \
	else if (((n) & ((n) - 1)) == 0 && (n) >= 4) {        \
		T *old_ = (v);                                \
		(v) = alloc(T, 2 * (n));                      \
		for (uint i_ = 0; i_ < (n); i_++) (v)[i_] = old_[i_]; \
	}                                                     \
} while (0)

static void *
note(void *p)
{
	assert(nptr < NPtr);
	return ptr[nptr++] = p;
}

static void
freeall(void)
{
	while (nptr > 0)
		HEAP_FREE(ptr[--nptr]);
}

/* sets of bits */

static void
bsinit(BSet *bs, uint n)
{
	bs->nt = (n + NBit - 1) / NBit;
	bs->t = alloc(unsigned long, (bs->nt + 3) & ~3u);
}

static inline int bshas(BSet *bs, uint e) { return bs->t[e / NBit] >> e % NBit & 1; }
static inline void bsset(BSet *bs, uint e) { bs->t[e / NBit] |= BIT(e % NBit); }
static inline void bsclr(BSet *bs, uint e) { bs->t[e / NBit] &= ~BIT(e % NBit); }

static int
bsunion(BSet *a, BSet *b)
{
	int chg = 0;

	for (uint i = 0; i < a->nt; i++) {
		chg |= (b->t[i] & ~a->t[i]) != 0;
		a->t[i] |= b->t[i];
	}
	return chg;
}

static int
bsiter(BSet *bs, int *elt)
{
	uint i = *elt, t = i / NBit;
	bits b;

	if (t >= bs->nt)
		return 0;
	b = bs->t[t] & ~(BIT(i % NBit) - 1);
	while (!b) {
		if (++t >= bs->nt)
			return 0;
		b = bs->t[t];
	}
	*elt = NBit * t + __builtin_ctzl(b);
	return 1;
}

static Ref
newtmp(char *prfx, int var, Fn *fn)
{
	vgrow(fn->tmp, Tmp, (uint)fn->ntmp);
	Tmp *t = &fn->tmp[fn->ntmp];
	memset(t, 0, sizeof *t);
	for (int i = 0; i < 3 && prfx[i]; i++)
		t->name[i] = prfx[i];
	t->name[4] = 'a' + fn->ntmp % 26;
	t->cls = fn->ntmp & 1;
	t->slot = t->reg = -1;
	t->var = var;
	t->cost = 1;
	return TMP(fn->ntmp++);
}

static Ref
getcon(long val, Fn *fn)
{
	int c;

	for (c = 0; c < fn->ncon; c++)
		if (fn->con[c].type == CBits && fn->con[c].bits.i == val)
			return CON(c);
	vgrow(fn->con, Con, (uint)fn->ncon);
	fn->con[c].type = CBits;
	fn->con[c].bits.i = val;
	fn->con[c].flt = 0;
	fn->ncon++;
	return CON(c);
}

/* a function out of thin air, over variables */

static uint64_t seed;

static uint
rnd(uint n)
{
	seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	return (uint)(seed >> 33) % n;
}

static Blk *
newblk(Fn *fn, Blk *prev, int loop)
{
	Blk *b = alloc(Blk, 1);

	b->id = fn->nblk++;
	b->loop = loop;
	b->name[0] = '@';
	b->name[1] = 'a' + b->id % 26;
	b->jmp.type = Jret;
	b->jmp.arg = R;
	if (prev)
		prev->link = b;
	else
		fn->start = b;
	return b;
}

static Ref
arg(Fn *fn)
{
	return rnd(4) ? VAR(rnd(NVar)) : getcon(rnd(12), fn);
}

static void
endblk(Blk *b, int type, Ref r, Blk *s1, Blk *s2)
{
	b->nins = curi - insb;
	b->ins = alloc(Ins, (b->nins + 31) & ~15u);
	for (uint i = 0; i < b->nins; i++)
		b->ins[i] = insb[i];
	curi = insb;
	b->jmp.type = type;
	b->jmp.arg = r;
	b->s1 = s1;
	b->s2 = s2;
}

static void
gencode(Fn *fn)
{
	for (int n = 3 + rnd(8); n > 0; n--) {
		uint op = rnd(9);
		if (op >= Ocopy)
			op = rnd(2) ? Oload : Ostore;
		*curi++ = (Ins){op, rnd(2), op == Ostore ? R : VAR(rnd(NVar)), {arg(fn), op == Oload ? R : arg(fn)}};
	}
}

/* code from b on; what follows goes to the block answered */
static Blk *
genstmts(Fn *fn, Blk *b, Blk **last, int depth, int loop)
{
	for (int n = 1 + rnd(3); n > 0; n--) {
		gencode(fn);
		if (depth == 0)
			continue;
		if (rnd(3)) {
			Blk *t = *last = newblk(fn, *last, loop), *e = *last = newblk(fn, *last, loop), *j;
			endblk(b, Jjnz, VAR(rnd(NVar)), t, e);
			t = genstmts(fn, t, last, depth - 1, loop);
			j = *last = newblk(fn, *last, loop);
			endblk(t, Jjmp, R, j, 0);
			e = genstmts(fn, e, last, depth - 1, loop);
			endblk(e, Jjmp, R, j, 0);
			b = j;
		} else {
			Blk *h = *last = newblk(fn, *last, loop * 8), *body = *last = newblk(fn, *last, loop * 8), *x;
			endblk(b, Jjmp, R, h, 0);
			gencode(fn);
			x = *last = newblk(fn, *last, loop);
			endblk(h, Jjnz, VAR(rnd(NVar)), body, x);
			body = genstmts(fn, body, last, depth - 1, loop * 8);
			endblk(body, Jjmp, R, h, 0);
			b = x;
		}
	}
	return b;
}

/* order, predecessors, dominators */

static uint
rporec(Blk *b, uint x, Blk **rpo)
{
	if (!b || b->visit)
		return x;
	b->visit = 1;
	x = rporec(b->s2, x, rpo);
	x = rporec(b->s1, x, rpo);
	rpo[x] = b;
	b->id = x;
	return x - 1;
}

static void
addpred(Blk *b, Blk *p)
{
	vgrow(b->pred, Blk *, b->npred);
	b->pred[b->npred++] = p;
}

static NOINLINE void
fillcfg(Fn *fn)
{
	uint n;

	fn->rpo = alloc(Blk *, (fn->nblk + 63) & ~63u);
	n = 1 + rporec(fn->start, fn->nblk - 1, fn->rpo);
	fn->nblk -= n;
	for (uint i = 0; i < fn->nblk; i++) {
		fn->rpo[i] = fn->rpo[i + n];
		fn->rpo[i]->id = i;
	}
	for (uint i = 0; i < fn->nblk; i++) {
		Blk *b = fn->rpo[i];
		if (b->s1)
			addpred(b->s1, b);
		if (b->s2)
			addpred(b->s2, b);
	}
}

static Blk *
inter(Blk *b1, Blk *b2)
{
	if (!b1)
		return b2;
	while (b1 != b2) {
		while (b1->id > b2->id)
			b1 = b1->idom;
		while (b2->id > b1->id)
			b2 = b2->idom;
	}
	return b1;
}

static NOINLINE void
filldom(Fn *fn)
{
	int ch;

	do {
		ch = 0;
		for (uint n = 1; n < fn->nblk; n++) {
			Blk *b = fn->rpo[n], *d = 0;
			for (uint p = 0; p < b->npred; p++)
				if (b->pred[p]->idom || b->pred[p] == fn->start)
					d = inter(d, b->pred[p]);
			if (d != b->idom) {
				ch++;
				b->idom = d;
			}
		}
	} while (ch);
	for (uint n = 1; n < fn->nblk; n++) {
		Blk *b = fn->rpo[n];
		b->dlink = b->idom->dom;
		b->idom->dom = b;
	}
	for (uint n = 0; n < fn->nblk; n++) {
		Blk *b = fn->rpo[n];
		if (b->npred < 2)
			continue;
		for (uint p = 0; p < b->npred; p++)
			for (Blk *a = b->pred[p]; a && a != b->idom; a = a->idom) {
				uint k;
				for (k = 0; k < a->nfron && a->fron[k] != b; k++)
					;
				if (k < a->nfron)
					continue;
				vgrow(a->fron, Blk *, a->nfron);
				a->fron[a->nfron++] = b;
			}
	}
}

/* to SSA */

static NOINLINE void
phiins(Fn *fn)
{
	Blk **work = alloc(Blk *, (fn->nblk + 63) & ~63u);
	BSet done;

	bsinit(&done, fn->nblk);
	for (int v = 0; v < NVar; v++) {
		uint n = 0;
		for (uint k = 0; k < done.nt; k++)
			done.t[k] = 0;
		for (uint i = 0; i < fn->nblk; i++) {
			Blk *b = fn->rpo[i];
			for (uint k = 0; k < b->nins; k++)
				if (req(b->ins[k].to, VAR(v))) {
					work[n++] = b;
					break;
				}
		}
		while (n > 0) {
			Blk *b = work[--n];
			for (uint f = 0; f < b->nfron; f++) {
				Blk *a = b->fron[f];
				if (bshas(&done, a->id))
					continue;
				bsset(&done, a->id);
				Phi *p = alloc(Phi, 1);
				p->to = newtmp("phi", v, fn);
				p->arg = alloc(Ref, (a->npred + 3) & ~3u);
				p->blk = alloc(Blk *, (a->npred + 3) & ~3u);
				p->link = a->phi;
				a->phi = p;
				work[n++] = a;
			}
		}
	}
}

static Name *
nnew(Ref r, Blk *b, Name *up)
{
	Name *n = namel;

	if (n)
		namel = n->up;
	else
		n = HEAP_CALLOC(Name, 1);
	n->r = r;
	n->b = b;
	n->up = up;
	return n;
}

static Ref
getstk(Name **stk, Ref r, Fn *fn)
{
	if (r.type != RVar)
		return r;
	return stk[r.val] ? stk[r.val]->r : getcon(0, fn);
}

static void
renblk(Blk *b, Name **stk, Fn *fn)
{
	Blk *succ[2] = {b->s1, b->s2};

	for (Phi *p = b->phi; p; p = p->link)
		stk[fn->tmp[p->to.val].var] = nnew(p->to, b, stk[fn->tmp[p->to.val].var]);
	for (Ins *i = b->ins; i < &b->ins[b->nins]; i++) {
		i->arg[0] = getstk(stk, i->arg[0], fn);
		i->arg[1] = getstk(stk, i->arg[1], fn);
		if (i->to.type == RVar) {
			uint v = i->to.val;
			i->to = newtmp("t", v, fn);
			stk[v] = nnew(i->to, b, stk[v]);
		}
	}
	b->jmp.arg = getstk(stk, b->jmp.arg, fn);
	for (int k = 0; k < 2; k++)
		if (succ[k])
			for (Phi *p = succ[k]->phi; p; p = p->link) {
				p->arg[p->narg] = getstk(stk, VAR(fn->tmp[p->to.val].var), fn);
				p->blk[p->narg++] = b;
			}
	for (Blk *s = b->dom; s; s = s->dlink)
		renblk(s, stk, fn);
	for (int v = 0; v < NVar; v++)
		while (stk[v] && stk[v]->b == b) {
			Name *n = stk[v];
			stk[v] = n->up;
			n->up = namel;
			namel = n;
		}
}

static void
adduse(Tmp *t, int type, Blk *b, Ins *i, Phi *p)
{
	if (t->nuse == t->cuse) {
		Use *old = t->use;
		t->use = alloc(Use, t->cuse ? 2 * t->cuse : 4);
		for (uint i_ = 0; i_ < t->nuse; i_++)
			t->use[i_] = old[i_];
		t->cuse = t->cuse ? 2 * t->cuse : 4;
	}
	Use *u = &t->use[t->nuse++];
	u->type = type;
	u->bid = b->id;
	if (type == UPhi)
		u->u.phi = p;
	else
		u->u.ins = i;
	t->cost += b->loop;
}

static NOINLINE void
filluse(Fn *fn)
{
	for (Tmp *t = fn->tmp; t < &fn->tmp[fn->ntmp]; t++) {
		t->ndef = t->nuse = 0;
		t->def = 0;
	}
	for (uint n = 0; n < fn->nblk; n++) {
		Blk *b = fn->rpo[n];
		for (Phi *p = b->phi; p; p = p->link) {
			fn->tmp[p->to.val].bid = b->id;
			fn->tmp[p->to.val].ndef++;
			for (uint a = 0; a < p->narg; a++)
				if (p->arg[a].type == RTmp)
					adduse(&fn->tmp[p->arg[a].val], UPhi, b, 0, p);
		}
		for (Ins *i = b->ins; i < &b->ins[b->nins]; i++) {
			if (i->to.type == RTmp) {
				Tmp *t = &fn->tmp[i->to.val];
				t->def = i;
				t->bid = b->id;
				t->ndef++;
			}
			for (int m = 0; m < 2; m++)
				if (i->arg[m].type == RTmp)
					adduse(&fn->tmp[i->arg[m].val], UIns, b, i, 0);
		}
		if (b->jmp.arg.type == RTmp)
			adduse(&fn->tmp[b->jmp.arg.val], UJmp, b, 0, 0);
	}
}

/* folding and numbering, uses are rewritten */

static void
subst(Fn *fn, Ref from, Ref to)
{
	Tmp *t = &fn->tmp[from.val];

	for (uint n = 0; n < t->nuse; n++) {
		Use *u = &t->use[n];
		switch (u->type) {
		case UPhi:
			for (uint a = 0; a < u->u.phi->narg; a++)
				if (req(u->u.phi->arg[a], from))
					u->u.phi->arg[a] = to;
			break;
		case UIns:
			for (int m = 0; m < 2; m++)
				if (req(u->u.ins->arg[m], from))
					u->u.ins->arg[m] = to;
			break;
		case UJmp:
			fn->rpo[u->bid]->jmp.arg = to;
			break;
		}
		if (to.type == RTmp)
			adduse(&fn->tmp[to.val], u->type, fn->rpo[u->bid], u->u.ins, u->u.phi);
	}
	fn->tmp[from.val].nuse = 0;
}

static int
foldint(long *res, uint op, Con *cl, Con *cr)
{
	ulong l = cl->bits.i, r = cr->bits.i;

	switch (op) {
	case Oadd: *res = l + r; break;
	case Osub: *res = l - r; break;
	case Omul: *res = l * r; break;
	case Oand: *res = l & r; break;
	case Oxor: *res = l ^ r; break;
	case Oshl: *res = l << (r & 63); break;
	case Oclt: *res = (long)l < (long)r; break;
	default: return 0;
	}
	*res &= 0xffff;
	return 1;
}

static NOINLINE void
fold(Fn *fn)
{
	for (uint n = 0; n < fn->nblk; n++) {
		Blk *b = fn->rpo[n];
		for (Ins *i = b->ins; i < &b->ins[b->nins]; i++) {
			long v;
			Ref r = R;
			if (!optab[i->op].canfold)
				continue;
			if (i->arg[0].type == RCon && i->arg[1].type == RCon) {
				if (foldint(&v, i->op, &fn->con[i->arg[0].val], &fn->con[i->arg[1].val]))
					r = getcon(v, fn);
			} else if (i->arg[1].type == RCon && fn->con[i->arg[1].val].bits.i == 0 && (i->op == Oadd || i->op == Osub || i->op == Oxor || i->op == Oshl))
				r = i->arg[0];
			if (r.type == RNone)
				continue;
			subst(fn, i->to, r);
			i->op = Onop;
			i->to = R;
			i->arg[0] = i->arg[1] = R;
			fn->nfold++;
		}
	}
}

static inline uint
refhash(Ref r)
{
	return r.type * 7 + r.val;
}

static int
dominates(Blk *a, Blk *b)
{
	while (b && b->id > a->id)
		b = b->idom;
	return a == b;
}

static NOINLINE void
gvn(Fn *fn)
{
	for (int h = 0; h < NHash; h++)
		gvntab[h] = 0;
	for (uint n = 0; n < fn->nblk; n++) {
		Blk *b = fn->rpo[n];
		for (Ins *i = b->ins; i < &b->ins[b->nins]; i++) {
			if (optab[i->op].pinned || i->to.type != RTmp)
				continue;
			if (optab[i->op].commutes && refhash(i->arg[0]) > refhash(i->arg[1])) {
				Ref r = i->arg[0];
				i->arg[0] = i->arg[1];
				i->arg[1] = r;
			}
			uint h = ((i->op * 31 + refhash(i->arg[0])) * 31 + refhash(i->arg[1])) * 2654435761u >> 25;
			Ins *o = gvntab[h];
			if (o && o->op == i->op && req(o->arg[0], i->arg[0]) && req(o->arg[1], i->arg[1]) && dominates(gvnblk[h], b)) {
				subst(fn, i->to, o->to);
				i->op = Onop;
				i->to = R;
				i->arg[0] = i->arg[1] = R;
				fn->ngvn++;
				continue;
			}
			gvntab[h] = i;
			gvnblk[h] = b;
		}
	}
}

static NOINLINE void
dce(Fn *fn)
{
	int ch;

	do {
		ch = 0;
		filluse(fn);
		for (int n = fn->nblk - 1; n >= 0; n--) {
			Blk *b = fn->rpo[n];
			Ins *d = b->ins;
			for (Phi **pp = &b->phi; *pp;) {
				Tmp *t = &fn->tmp[(*pp)->to.val];
				if (t->nuse == 0 || (t->nuse == 1 && t->use[0].type == UPhi && t->use[0].u.phi == *pp)) {
					*pp = (*pp)->link;
					ch++;
				} else
					pp = &(*pp)->link;
			}
			for (Ins *i = b->ins; i < &b->ins[b->nins]; i++) {
				if (i->op == Onop || (i->to.type == RTmp && fn->tmp[i->to.val].nuse == 0)) {
					ch += i->op != Onop;
					fn->ndead++;
					continue;
				}
				*d++ = *i;
			}
			b->nins = d - b->ins;
		}
	} while (ch);
	filluse(fn);
}

/* liveness and registers */

static NOINLINE void
filllive(Fn *fn)
{
	int chg;

	for (uint n = 0; n < fn->nblk; n++) {
		Blk *b = fn->rpo[n];
		bsinit(b->in, fn->ntmp);
		bsinit(b->out, fn->ntmp);
	}
	do {
		chg = 0;
		for (int n = fn->nblk - 1; n >= 0; n--) {
			Blk *b = fn->rpo[n], *succ[2] = {b->s1, b->s2};
			for (int k = 0; k < 2; k++) {
				if (!succ[k])
					continue;
				chg |= bsunion(b->out, succ[k]->in);
				for (Phi *p = succ[k]->phi; p; p = p->link)
					for (uint a = 0; a < p->narg; a++)
						if (p->blk[a] == b && p->arg[a].type == RTmp && !bshas(b->out, p->arg[a].val)) {
							bsset(b->out, p->arg[a].val);
							chg = 1;
						}
			}
			for (uint k = 0; k < b->in->nt; k++)
				b->in->t[k] = b->out->t[k];
			if (b->jmp.arg.type == RTmp)
				bsset(b->in, b->jmp.arg.val);
			for (Ins *i = &b->ins[b->nins]; i-- > b->ins;) {
				if (i->to.type == RTmp)
					bsclr(b->in, i->to.val);
				for (int m = 0; m < 2; m++)
					if (i->arg[m].type == RTmp)
						bsset(b->in, i->arg[m].val);
			}
			for (Phi *p = b->phi; p; p = p->link)
				bsclr(b->in, p->to.val);
		}
	} while (chg);
}

static inline void
extend(Tmp *t, int at)
{
	if (at < t->live.lo)
		t->live.lo = at;
	if (at > t->live.hi)
		t->live.hi = at;
}

static NOINLINE void
intervals(Fn *fn)
{
	int pos = 0;

	for (Tmp *t = fn->tmp; t < &fn->tmp[fn->ntmp]; t++) {
		t->live.lo = 1 << 30;
		t->live.hi = -1;
	}
	for (uint n = 0; n < fn->nblk; n++) {
		Blk *b = fn->rpo[n];
		int t;
		b->nlive = 0;
		for (t = 0; bsiter(b->in, &t); t++)
			extend(&fn->tmp[t], pos);
		for (Phi *p = b->phi; p; p = p->link)
			extend(&fn->tmp[p->to.val], pos);
		for (Ins *i = b->ins; i < &b->ins[b->nins]; i++, pos++) {
			if (i->to.type == RTmp)
				extend(&fn->tmp[i->to.val], pos);
			for (int m = 0; m < 2; m++)
				if (i->arg[m].type == RTmp)
					extend(&fn->tmp[i->arg[m].val], pos);
		}
		for (t = 0; bsiter(b->out, &t); t++, b->nlive++)
			extend(&fn->tmp[t], pos);
		if (b->nlive > (int)fn->maxlive)
			fn->maxlive = b->nlive;
	}
}

static int
tmpcmp(const void *a, const void *b)
{
	const Tmp *ta = *(Tmp *const *)a, *tb = *(Tmp *const *)b;

	return ta->live.lo != tb->live.lo ? ta->live.lo - tb->live.lo : ta < tb ? -1 : 1;
}

static NOINLINE void
rega(Fn *fn)
{
	Tmp **order = alloc(Tmp *, (fn->ntmp + 127) & ~127u);
	Iv *ivs = alloc(Iv, (fn->ntmp + 127) & ~127u), head = {0, &head, &head};
	uint n = 0, nactive = 0, slots = 0;
	bits freeregs = BIT(NReg) - 1;

	for (Tmp *t = fn->tmp; t < &fn->tmp[fn->ntmp]; t++)
		if (t->live.hi >= 0)
			order[n++] = t;
	/* nearly in order: by insertion */
	for (uint i = 1; i < n; i++) {
		Tmp *t = order[i];
		uint j = i;
		for (; j > 0 && tmpcmp(&order[j - 1], &t) > 0; j--)
			order[j] = order[j - 1];
		order[j] = t;
	}
	for (uint i = 0; i < n; i++) {
		Tmp *t = order[i];
		Iv *iv = &ivs[i], *cheap = 0, *v, *next;
		for (v = head.next; v != &head; v = next) {
			next = v->next;
			if (v->t->live.hi < t->live.lo) {
				freeregs |= BIT(v->t->reg);
				v->prev->next = v->next;
				v->next->prev = v->prev;
				nactive--;
			} else if (!cheap || v->t->cost < cheap->t->cost)
				cheap = v;
		}
		iv->t = t;
		if (!freeregs) {
			fn->nspill++;
			if (cheap->t->cost >= t->cost) {
				t->slot = slots++;
				continue;
			}
			freeregs |= BIT(cheap->t->reg);
			cheap->t->reg = -1;
			cheap->t->slot = slots++;
			cheap->prev->next = cheap->next;
			cheap->next->prev = cheap->prev;
		} else
			nactive++;
		t->reg = __builtin_ctzl(freeregs);
		freeregs &= freeregs - 1;
		iv->next = head.next;
		iv->prev = &head;
		head.next->prev = iv;
		head.next = iv;
	}
}

static char *
putref(char *o, Ref r, Fn *fn)
{
	if (r.type == RCon) {
		*o++ = '$';
		*o++ = '0' + fn->con[r.val].bits.i % 10;
	} else if (r.type == RTmp) {
		Tmp *t = &fn->tmp[r.val];
		*o++ = t->reg >= 0 ? 'r' : '[';
		*o++ = '0' + (t->reg >= 0 ? t->reg : t->slot) % 10;
	}
	*o++ = ' ';
	return o;
}

static NOINLINE ulong
emit(Fn *fn, char *buf, uint size)
{
	char *o = buf;
	ulong cost = 0;

	for (uint n = 0; n < fn->nblk; n++) {
		Blk *b = fn->rpo[n];
		for (char *s = b->name; *s; s++)
			*o++ = *s;
		for (Ins *i = b->ins; i < &b->ins[b->nins]; i++) {
			for (char *s = optab[i->op].name; *s; s++)
				*o++ = *s;
			*o++ = ' ';
			o = putref(o, i->arg[0], fn);
			o = putref(o, i->arg[1], fn);
			o = putref(o, i->to, fn);
			cost += optab[i->op].cost * b->loop;
			if (o > buf + size - 64)
				o = buf;
		}
	}
	return cost;
}

int
main(int ac, char **av)
{
	Name *stk[NVar];
	char *buf;
	ulong sum = 0;

	tr_init(ac, av);
	TR_GLOBAL(optab, "Op []");
	TR_GLOBAL(insb, "Ins []");
	TR_GLOBAL(curi, "Ins *");
	TR_GLOBAL(ptr, "void **");
	TR_GLOBAL(nptr, "unsigned int");
	TR_GLOBAL(namel, "Name *");
	TR_GLOBAL(gvntab, "Ins * []");
	TR_GLOBAL(gvnblk, "Blk * []");
	TR_GLOBAL(seed, "unsigned long");
	TR_CHECK(Blk, out);
	TR_CHECK(Tmp, live);
	TR_CHECK(Phi, narg);
	ptr = HEAP_CALLOC(void *, NPtr);
	buf = HEAP_CALLOC(char, 8192);
	seed = 12345;
	curi = insb;
	while (tr_more()) {
		Fn *fn = alloc(Fn, 1);
		Blk *last, *b;
		seed = 12345 + stat.fn % 24;
		b = last = newblk(fn, 0, 1);
		b = genstmts(fn, b, &last, 3, 1);
		endblk(b, Jret, VAR(0), 0, 0);
		fillcfg(fn);
		filldom(fn);
		phiins(fn);
		for (int v = 0; v < NVar; v++)
			stk[v] = 0;
		renblk(fn->start, stk, fn);
		filluse(fn);
		fold(fn);
		gvn(fn);
		dce(fn);
		filllive(fn);
		intervals(fn);
		rega(fn);
		sum += emit(fn, buf, 8192);
		stat.fn++;
		stat.spill += fn->nspill;
		stat.fold += fn->nfold;
		stat.gvn += fn->ngvn;
		stat.dead += fn->ndead;
		stat.ins += fn->ntmp;
		freeall();
	}
	if (getenv("VERBOSE"))
		printf("%lu functions, %lu temporaries, %lu folded, %lu numbered, %lu dead, %lu spilled, cost %lu\n", stat.fn, stat.ins, stat.fold, stat.gvn, stat.dead, stat.spill, sum);
	tr_sink = sum;
	return 0;
}
