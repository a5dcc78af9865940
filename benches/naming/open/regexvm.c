/*
 * Regular expressions: parsed by recursive descent, compiled to instructions, run by three machines:
 * threads in lock step with captures, a backtracker with a bitmap, states that are made when they are needed.
 */
#include "../heap.h"

#define nil ((void*)0)
#define nelem(x) (int)(sizeof(x)/sizeof((x)[0]))

typedef unsigned char uchar;
typedef unsigned int uint32;

typedef struct Class Class;
typedef struct Regexp Regexp;
typedef struct Inst Inst;
typedef struct Prog Prog;
typedef struct Sub Sub;
typedef struct Thread Thread;
typedef struct ThreadList ThreadList;
typedef struct State State;
typedef struct Dfa Dfa;
typedef struct Job Job;
typedef struct Prefix Prefix;
typedef struct Matcher Matcher;

enum {	/* Regexp.type */
	Alt = 1, Cat, Lit, Dot, Paren, Quest, Star, Plus, Set, Bol, Eol, Empty
};

enum {	/* Inst.opcode */
	IChar = 1, IAny, ISet, IMatch, IJmp, ISplit, ISave, IBol, IEol
};

enum {
	MAXSUB = 8,
	MAXLIT = 16,
	NHASH = 64,
	MAXSTATE = 120,
};

struct Class
{
	Class *next;
	uint32 bits[8];
	int negate;
	int nrange;
	struct Range { uchar lo, hi; } range[12];
};

struct Regexp
{
	int type;
	int n;
	int ch;
	Class *cc;
	Regexp *left;
	Regexp *right;
};

struct Inst
{
	int opcode;
	int c;
	int n;
	int gen;	/* of the last list that it was put on */
	Inst *x;
	Inst *y;
	Class *cc;
};

struct Prog
{
	Prog *next;
	const char *pattern;
	Class *classes;
	int len;
	int nsub;
	int nbyte;
	uchar bytemap[256];
	Inst *inst;
};

struct Sub
{
	int ref;
	int nsub;
	union {
		Sub *free;
		const uchar *sub[MAXSUB];
	};
};

struct Thread
{
	Inst *pc;
	Sub *sub;
};

struct ThreadList
{
	int n;
	int max;
	Thread *t;
};

struct State
{
	State *hash;
	uint32 key;
	short match, eolmatch;
	int ninst;
	Inst **inst;
	State *next[];	/* by class of bytes */
};

struct Dfa
{
	State *table[NHASH];
	State *start;
	Inst **list;
	int nlist;
	int nstate;
	int resets;
};

struct Job
{
	Inst *pc;
	const uchar *sp;
	int restore;	/* a capture to put back, or -1 */
};

struct Prefix
{
	uchar lit[MAXLIT];
	int n;
	uchar skip[256];
};

struct Matcher
{
	Prog *prog;
	Prefix prefix;
	Dfa dfa;
	ThreadList *clist, *nlist;
	uint32 *visited;
	int nvisited;
	Job *job;
	int njob, maxjob;
	const uchar *cap[MAXSUB];
	struct { unsigned long tries, skipped, hits, replaced; } stats;
};

static Sub *freesub;
static int gen;
static const uchar *bot, *eot;	/* the text that is matched */

static struct
{
	const char *p;
	int ngroup;
	Class *classes;
} parser;

/* ---- classes ---- */

#define inclass(cc, c) ((cc)->bits[(c)>>5] >> ((c)&31) & 1)

static void
addrange(Class *cc, int lo, int hi)
{
	if(cc->nrange < nelem(cc->range)){
		cc->range[cc->nrange].lo = lo;
		cc->range[cc->nrange++].hi = hi;
	}
}

static NOINLINE void
finishclass(Class *cc)
{
	int i, c;

	for(i = 0; i < cc->nrange; i++)
		for(c = cc->range[i].lo; c <= cc->range[i].hi; c++)
			cc->bits[c>>5] |= 1u << (c&31);
	if(cc->negate)
		for(i = 0; i < 8; i++)
			cc->bits[i] = ~cc->bits[i];
}

static Class*
newclass(void)
{
	Class *cc = HEAP_CALLOC(Class, 1);

	cc->next = parser.classes;
	parser.classes = cc;
	return cc;
}

static Class*
escapeclass(int c)
{
	Class *cc = newclass();

	switch(c){
	case 'd': addrange(cc, '0', '9'); break;
	case 'w': addrange(cc, 'a', 'z'); addrange(cc, 'A', 'Z'); addrange(cc, '0', '9'); addrange(cc, '_', '_'); break;
	case 's': addrange(cc, ' ', ' '); addrange(cc, '\t', '\r'); break;
	}
	finishclass(cc);
	return cc;
}

/* ---- the parser ---- */

static Regexp*
reg(int type, Regexp *left, Regexp *right)
{
	Regexp *r = HEAP_CALLOC(Regexp, 1);

	r->type = type;
	r->left = left;
	r->right = right;
	return r;
}

static Regexp *parsealt(void);

static Class*
parseset(void)
{
	Class *cc = newclass();

	if(*parser.p == '^'){
		cc->negate = 1;
		parser.p++;
	}
	do{
		int lo = (uchar)*parser.p++, hi = lo;
		if(parser.p[0] == '-' && parser.p[1] != ']'){
			hi = (uchar)parser.p[1];
			parser.p += 2;
		}
		addrange(cc, lo, hi);
	}while(*parser.p && *parser.p != ']');
	parser.p++;
	finishclass(cc);
	return cc;
}

static Regexp*
parseatom(void)
{
	Regexp *r;
	int c = (uchar)*parser.p++;

	switch(c){
	case '(':
		if(parser.p[0] == '?' && parser.p[1] == ':'){
			parser.p += 2;
			r = parsealt();
		}else{
			int n = ++parser.ngroup;
			r = reg(Paren, parsealt(), nil);
			r->n = n;
		}
		parser.p++;
		return r;
	case '[':
		r = reg(Set, nil, nil);
		r->cc = parseset();
		return r;
	case '.': return reg(Dot, nil, nil);
	case '^': return reg(Bol, nil, nil);
	case '$': return reg(Eol, nil, nil);
	case '\\':
		c = (uchar)*parser.p++;
		if(strchr("dws", c)){
			r = reg(Set, nil, nil);
			r->cc = escapeclass(c);
			return r;
		}
	}
	r = reg(Lit, nil, nil);
	r->ch = c;
	return r;
}

static Regexp*
parsecat(void)
{
	Regexp *r = nil, *a;

	while(*parser.p && *parser.p != '|' && *parser.p != ')'){
		a = parseatom();
		while(*parser.p == '*' || *parser.p == '+' || *parser.p == '?'){
			a = reg(*parser.p == '*' ? Star : *parser.p == '+' ? Plus : Quest, a, nil);
			if(*++parser.p == '?'){
				a->n = 1;	/* not greedy */
				parser.p++;
			}
		}
		r = r ? reg(Cat, r, a) : a;
	}
	return r ? r : reg(Empty, nil, nil);
}

static Regexp*
parsealt(void)
{
	Regexp *r = parsecat();

	while(*parser.p == '|'){
		parser.p++;
		r = reg(Alt, r, parsecat());
	}
	return r;
}

static void
freereg(Regexp *r)
{
	if(r == nil)
		return;
	freereg(r->left);
	freereg(r->right);
	HEAP_FREE(r);
}

/* ---- the compiler ---- */

static int
count(Regexp *r)
{
	switch(r->type){
	case Alt: return 2 + count(r->left) + count(r->right);
	case Cat: return count(r->left) + count(r->right);
	case Paren: return 2 + count(r->left);
	case Quest: case Plus: return 1 + count(r->left);
	case Star: return 2 + count(r->left);
	case Empty: return 0;
	default: return 1;
	}
}

static void
greed(Inst *split, int lazy)
{
	Inst *t;

	if(lazy){
		t = split->x;
		split->x = split->y;
		split->y = t;
	}
}

static Inst*
emit(Inst *pc, Regexp *r)
{
	Inst *p1, *p2;

	switch(r->type){
	case Alt:
		p1 = pc++;
		p1->opcode = ISplit;
		p1->x = pc;
		p2 = pc = emit(pc, r->left);
		p2->opcode = IJmp;
		p1->y = ++pc;
		pc = emit(pc, r->right);
		p2->x = pc;
		return pc;
	case Cat:
		return emit(emit(pc, r->left), r->right);
	case Lit: pc->opcode = IChar; pc->c = r->ch; return pc+1;
	case Set: pc->opcode = ISet; pc->cc = r->cc; return pc+1;
	case Dot: pc->opcode = IAny; return pc+1;
	case Bol: pc->opcode = IBol; return pc+1;
	case Eol: pc->opcode = IEol; return pc+1;
	case Paren:
		pc->opcode = ISave;
		pc->n = 2*r->n;
		pc = emit(pc+1, r->left);
		pc->opcode = ISave;
		pc->n = 2*r->n + 1;
		return pc+1;
	case Quest:
		p1 = pc;
		p1->opcode = ISplit;
		p1->x = pc+1;
		p1->y = pc = emit(pc+1, r->left);
		greed(p1, r->n);
		return pc;
	case Star:
		p1 = pc;
		p1->opcode = ISplit;
		p1->x = pc+1;
		pc = emit(pc+1, r->left);
		pc->opcode = IJmp;
		pc->x = p1;
		p1->y = ++pc;
		greed(p1, r->n);
		return pc;
	case Plus:
		p1 = pc;
		pc = emit(pc, r->left);
		pc->opcode = ISplit;
		pc->x = p1;
		pc->y = pc+1;
		greed(pc, r->n);
		return pc+1;
	}
	return pc;
}

/* Bytes that no instruction tells apart get the same number. */
static NOINLINE void
mapbytes(Prog *prog)
{
	uchar edge[257] = { 0 };
	Class *cc;
	int i, c;

	for(i = 0; i < prog->len; i++)
		if(prog->inst[i].opcode == IChar)
			edge[prog->inst[i].c] = edge[prog->inst[i].c + 1] = 1;
	for(cc = prog->classes; cc; cc = cc->next)
		for(i = 0; i < cc->nrange; i++)
			edge[cc->range[i].lo] = edge[cc->range[i].hi + 1] = 1;
	edge['\n'] = edge['\n' + 1] = 1;
	for(prog->nbyte = 0, c = 0; c < 256; c++){
		if(c && edge[c])
			prog->nbyte++;
		prog->bytemap[c] = prog->nbyte;
	}
	prog->nbyte++;
}

static NOINLINE Prog*
compile(const char *pattern)
{
	Regexp *r;
	Prog *p;
	Inst *pc;
	int n;

	parser.p = pattern;
	parser.ngroup = 0;
	parser.classes = nil;
	r = parsealt();
	n = count(r) + 3;
	p = HEAP_CALLOC(Prog, 1);
	p->inst = HEAP_CALLOC(Inst, n);
	p->pattern = pattern;
	p->len = n;
	p->nsub = 2*(parser.ngroup + 1);
	p->classes = parser.classes;
	pc = p->inst;
	pc->opcode = ISave;
	pc = emit(pc+1, r);
	pc->opcode = ISave;
	pc->n = 1;
	pc[1].opcode = IMatch;
	mapbytes(p);
	freereg(r);
	return p;
}

static void
freeprog(Prog *p)
{
	Class *cc, *next;

	for(cc = p->classes; cc; cc = next){
		next = cc->next;
		HEAP_FREE(cc);
	}
	HEAP_FREE(p->inst);
	HEAP_FREE(p);
}

/* ---- the literal that each match starts with ---- */

static void
findprefix(Prefix *f, Prog *p)
{
	Inst *pc = p->inst;
	int i;

	f->n = 0;
	for(; pc->opcode == ISave || pc->opcode == IChar; pc++)
		if(pc->opcode == IChar && f->n < MAXLIT)
			f->lit[f->n++] = pc->c;
	if((pc->opcode == ISplit || pc->opcode == IJmp) && f->n)
		f->n--;	/* it may be what is repeated */
	for(i = 0; i < 256; i++)
		f->skip[i] = f->n;
	for(i = 0; i+1 < f->n; i++)
		f->skip[f->lit[i]] = f->n - 1 - i;
}

static NOINLINE const uchar*
skipto(const Prefix *f, const uchar *s, const uchar *e)
{
	int last = f->n - 1, i;

	while(e - s > last){
		uchar c = s[last];
		if(c == f->lit[last]){
			for(i = 0; i < last && s[i] == f->lit[i]; i++)
				;
			if(i == last)
				return s;
		}
		s += f->skip[c];
	}
	return nil;
}

/* ---- threads in lock step ---- */

static Sub*
newsub(int n)
{
	Sub *s = freesub;
	int i;

	if(s)
		freesub = s->free;
	else
		s = HEAP_MALLOC(Sub);
	s->ref = 1;
	s->nsub = n;
	for(i = 0; i < n; i++)
		s->sub[i] = nil;
	return s;
}

static void
decref(Sub *s)
{
	if(--s->ref == 0){
		s->free = freesub;
		freesub = s;
	}
}

static Sub*
update(Sub *s, int i, const uchar *p)
{
	if(s->ref > 1){
		Sub *s1 = newsub(s->nsub);
		int j;
		for(j = 0; j < s->nsub; j++)
			s1->sub[j] = s->sub[j];
		s->ref--;
		s = s1;
	}
	s->sub[i] = p;
	return s;
}

static NOINLINE void
addthread(ThreadList *l, Inst *pc, Sub *sub, const uchar *sp)
{
	if(pc->gen == gen){
		decref(sub);
		return;
	}
	pc->gen = gen;
	switch(pc->opcode){
	case IJmp:
		addthread(l, pc->x, sub, sp);
		break;
	case ISplit:
		sub->ref++;
		addthread(l, pc->x, sub, sp);
		addthread(l, pc->y, sub, sp);
		break;
	case ISave:
		addthread(l, pc+1, update(sub, pc->n, sp), sp);
		break;
	case IBol:
		if(sp == bot)
			addthread(l, pc+1, sub, sp);
		else
			decref(sub);
		break;
	case IEol:
		if(sp == eot)
			addthread(l, pc+1, sub, sp);
		else
			decref(sub);
		break;
	default:
		l->t[l->n].pc = pc;
		l->t[l->n].sub = sub;
		l->n++;
	}
}

static NOINLINE int
pikevm(Matcher *m, const uchar *sp)
{
	ThreadList *clist = m->clist, *nlist = m->nlist, *tmp;
	Sub *matched = nil;
	int i;

	clist->n = 0;
	gen++;
	for(;; sp++){
		if(matched == nil)
			addthread(clist, m->prog->inst, newsub(m->prog->nsub), sp);
		if(clist->n == 0 && (matched || sp == eot))
			break;
		gen++;
		nlist->n = 0;
		for(i = 0; i < clist->n; i++){
			Inst *pc = clist->t[i].pc;
			Sub *sub = clist->t[i].sub;
			if(pc->opcode == IMatch){
				if(matched)
					decref(matched);
				matched = sub;
				for(i++; i < clist->n; i++)
					decref(clist->t[i].sub);
				break;
			}
			if(sp < eot && (pc->opcode == IAny || (pc->opcode == IChar && *sp == pc->c) || (pc->opcode == ISet && inclass(pc->cc, *sp))))
				addthread(nlist, pc+1, sub, sp+1);
			else
				decref(sub);
		}
		tmp = clist;
		clist = nlist;
		nlist = tmp;
		if(sp == eot)
			break;
	}
	for(i = 0; i < clist->n; i++)
		decref(clist->t[i].sub);
	if(matched == nil)
		return 0;
	for(i = 0; i < matched->nsub; i++)
		m->cap[i] = matched->sub[i];
	decref(matched);
	return 1;
}

/* ---- the backtracker ---- */

static void
push(Matcher *m, Inst *pc, const uchar *sp, int restore)
{
	Job *j;

	if(m->njob == m->maxjob){
		m->maxjob = m->maxjob ? 2*m->maxjob : 64;
		m->job = HEAP_REALLOC(m->job, Job, m->maxjob);
	}
	j = &m->job[m->njob++];
	j->pc = pc;
	j->sp = sp;
	j->restore = restore;
}

static NOINLINE int
backtrackat(Matcher *m, const uchar *start)
{
	Prog *prog = m->prog;
	int width = eot - bot + 1;

	m->njob = 0;
	push(m, prog->inst, start, -1);
	while(m->njob > 0){
		Job *j = &m->job[--m->njob];
		Inst *pc = j->pc;
		const uchar *sp = j->sp;
		if(j->restore >= 0){
			m->cap[j->restore] = sp;
			continue;
		}
		for(;;){
			int bit = (pc - prog->inst)*width + (sp - bot);
			if(m->visited[bit>>5] >> (bit&31) & 1)
				break;
			m->visited[bit>>5] |= 1u << (bit&31);
			switch(pc->opcode){
			case IChar: if(sp == eot || *sp != pc->c) goto fail; sp++; pc++; continue;
			case IAny: if(sp == eot) goto fail; sp++; pc++; continue;
			case ISet: if(sp == eot || !inclass(pc->cc, *sp)) goto fail; sp++; pc++; continue;
			case IJmp: pc = pc->x; continue;
			case ISplit: push(m, pc->y, sp, -1); pc = pc->x; continue;
			case ISave:
				push(m, nil, m->cap[pc->n], pc->n);
				m->cap[pc->n] = sp;
				pc++;
				continue;
			case IBol: if(sp != bot) goto fail; pc++; continue;
			case IEol: if(sp != eot) goto fail; pc++; continue;
			case IMatch: return 1;
			}
		}
	fail:;
	}
	return 0;
}

static NOINLINE int
backtrack(Matcher *m, const uchar *sp)
{
	int n = (m->prog->len*(eot - bot + 1) + 31)/32, i;

	if(n > m->nvisited)
		m->visited = HEAP_REALLOC(m->visited, unsigned int, m->nvisited = 2*n);
	for(i = 0; i < n; i++)
		m->visited[i] = 0;
	for(i = 0; i < m->prog->nsub; i++)
		m->cap[i] = nil;
	for(; sp <= eot; sp++)
		if(backtrackat(m, sp))
			return 1;
	return 0;
}

/* ---- states that are made when they are needed ---- */

static void
addstate(Dfa *d, Inst *pc, int atbol, int ateol)
{
	if(pc->gen == gen)
		return;
	pc->gen = gen;
	switch(pc->opcode){
	case IJmp: addstate(d, pc->x, atbol, ateol); break;
	case ISplit: addstate(d, pc->x, atbol, ateol); addstate(d, pc->y, atbol, ateol); break;
	case ISave: addstate(d, pc+1, atbol, ateol); break;
	case IBol: if(atbol) addstate(d, pc+1, atbol, ateol); break;
	case IEol: if(ateol) addstate(d, pc+1, atbol, ateol); /* fall through */
	default: d->list[d->nlist++] = pc;
	}
}

static void
resetdfa(Dfa *d)
{
	State *s, *next;
	int i;

	for(i = 0; i < NHASH; i++){
		for(s = d->table[i]; s; s = next){
			next = s->hash;
			HEAP_FREE(s->inst);
			HEAP_FREE(s);
		}
		d->table[i] = nil;
	}
	d->start = nil;
	d->nstate = 0;
	d->resets++;
}

static NOINLINE State*
findstate(Matcher *m)
{
	Dfa *d = &m->dfa;
	uint32 key = 2166136261u;
	State *s;
	size_t size;
	int i, j, n;

	for(i = 1; i < d->nlist; i++){	/* in the order of the program */
		Inst *pc = d->list[i];
		for(j = i; j > 0 && d->list[j-1] > pc; j--)
			d->list[j] = d->list[j-1];
		d->list[j] = pc;
	}
	for(i = 0; i < d->nlist; i++)
		key = (key ^ (uint32)(d->list[i] - m->prog->inst))*16777619u;
	for(s = d->table[key%NHASH]; s; s = s->hash){
		if(s->key != key || s->ninst != d->nlist)
			continue;
		for(i = 0; i < s->ninst && s->inst[i] == d->list[i]; i++)
			;
		if(i == s->ninst)
			return s;
	}
	size = sizeof(State) + m->prog->nbyte*sizeof(State*);
	s = memset(HEAP_FLEXIBLE(State, size), 0, size);
	s->key = key;
	s->ninst = d->nlist;
	s->inst = HEAP_CALLOC(Inst *, (s->ninst + 7) & ~7);
	for(i = 0; i < s->ninst; i++){
		s->inst[i] = d->list[i];
		s->match |= s->inst[i]->opcode == IMatch;
	}
	s->hash = d->table[key%NHASH];
	d->table[key%NHASH] = s;
	d->nstate++;
	n = d->nlist;
	gen++;
	for(i = 0; i < s->ninst; i++)
		addstate(d, s->inst[i], 0, 1);
	for(i = n; i < d->nlist; i++)
		s->eolmatch |= d->list[i]->opcode == IMatch;
	return s;
}

static NOINLINE State*
nextstate(Matcher *m, State *s, int c)
{
	Dfa *d = &m->dfa;
	int i;

	gen++;
	d->nlist = 0;
	for(i = 0; i < s->ninst; i++){
		Inst *pc = s->inst[i];
		if(pc->opcode == IAny || (pc->opcode == IChar && pc->c == c) || (pc->opcode == ISet && inclass(pc->cc, c)))
			addstate(d, pc+1, 0, 0);
	}
	addstate(d, m->prog->inst, 0, 0);
	return s->next[m->prog->bytemap[c]] = findstate(m);
}

static NOINLINE int
rundfa(Matcher *m, const uchar *sp)
{
	Dfa *d = &m->dfa;
	const uchar *map = m->prog->bytemap;
	State *s, *next;

	if(d->nstate > MAXSTATE)
		resetdfa(d);
	if(sp != bot || d->start == nil){
		gen++;
		d->nlist = 0;
		addstate(d, m->prog->inst, sp == bot, 0);
		s = findstate(m);
		if(sp == bot)
			d->start = s;
	}else
		s = d->start;
	for(; sp < eot; sp++){
		if(s->match)
			return 1;
		next = s->next[map[*sp]];
		s = next ? next : nextstate(m, s, *sp);
	}
	return s->match || s->eolmatch;
}

/* ---- all together ---- */

typedef struct Line Line;
struct Line
{
	const uchar *text;
	int n;
	int level;
	unsigned hits;
};

typedef struct Buf Buf;
struct Buf
{
	uchar *data;
	int n, max;
};

static const char *const patterns[] = {
	"ERROR: (\\w+) (?:failed|broke) at (\\d+)",
	"^(\\d\\d):(\\d\\d):(\\d\\d) ",
	"([a-z]+)@([a-z]+)[.](com|org|net)",
	"(?:GET|POST|PUT) (/[^ ?]*)(?:[?]([^ ]*))? HTTP",
	"user=(\\w+)(?: .*)?$",
	"(a|ab|abc)+(c|bcd|d)*x?",
	"\"([^\"]*)\"",
	"took (\\d+?)(\\d*)(?:ms|s)$",
};
static const char *const words[] = { "disk", "queue", "abcd", "abcabx", "user=ann", "timeout", "socket", "reader", "bob@mail.org",
	"eve@node.com", "\"quoted text\"", "cache", "parser", "GET /index.html HTTP", "POST /form?a=1 HTTP", "user=root", "ababcd", "took 120ms" };

static Matcher matchers[nelem(patterns)];
static Buf out;
static unsigned long disagreed;

static ThreadList*
newlist(int max)
{
	ThreadList *l = HEAP_CALLOC(ThreadList, 1);

	l->max = max;
	l->t = HEAP_CALLOC(Thread, max);
	return l;
}

static void
freelist(ThreadList *l)
{
	HEAP_FREE(l->t);
	HEAP_FREE(l);
}

static void
setup(Matcher *m, const char *pattern)
{
	Prog *p = m->prog = compile(pattern);

	findprefix(&m->prefix, p);
	m->clist = newlist(p->len);
	m->nlist = newlist(p->len);
	m->dfa.list = HEAP_CALLOC(Inst *, 2*p->len);
}

static void
teardown(Matcher *m)
{
	resetdfa(&m->dfa);
	HEAP_FREE(m->dfa.list);
	freelist(m->clist);
	freelist(m->nlist);
	freeprog(m->prog);
}

static NOINLINE void
append(Buf *b, const uchar *s, const uchar *e)
{
	while(b->n + (e - s) > b->max)
		b->data = HEAP_REALLOC(b->data, unsigned char, b->max = b->max ? 2*b->max : 256);
	while(s < e)
		b->data[b->n++] = *s++;
}

static NOINLINE void
replaceall(Matcher *m, Line *l)
{
	const uchar *sp = l->text;

	out.n = 0;
	while(sp <= eot && pikevm(m, sp)){
		append(&out, sp, m->cap[0]);
		for(int i = 2; i < m->prog->nsub; i += 2)
			if(m->cap[i])
				append(&out, m->cap[i], m->cap[i+1]);
		sp = m->cap[1] > sp ? m->cap[1] : sp + 1;
		m->stats.replaced++;
	}
	if(sp < eot)
		append(&out, sp, eot);
}

static NOINLINE void
grep(Matcher *m, Line *l, int thorough)
{
	const uchar *sp = l->text, *start, *end;

	bot = l->text;
	eot = bot + l->n;
	m->stats.tries++;
	if(m->prefix.n > 1 && (sp = skipto(&m->prefix, sp, eot)) == nil){
		m->stats.skipped++;
		return;
	}
	if(!rundfa(m, sp))
		return;
	m->stats.hits++;
	l->hits++;
	if(!thorough)
		return;
	if(!pikevm(m, sp))
		disagreed++;
	start = m->cap[0];
	end = m->cap[1];
	if(!backtrack(m, sp) || m->cap[0] != start || m->cap[1] != end)
		disagreed++;
	if(m->stats.hits % 4 == 0)
		replaceall(m, l);
}

static void
writeline(Line *l, int i)
{
	char text[200];
	int n = snprintf(text, sizeof text, "%02d:%02d:%02d ", i/60%24, i%60, i*7%60);
	uchar *data;

	if(i % 5 == 0)
		n += snprintf(text+n, sizeof text - n, "ERROR: %s %s at %d ", words[i%nelem(words)], i%2 ? "broke" : "failed", i*31);
	for(int k = 2 + tr_rand()%5; k > 0; k--)
		n += snprintf(text+n, sizeof text - n, "%s%s", words[tr_rand()%nelem(words)], k > 1 ? " " : "");
	data = HEAP_CALLOC(unsigned char, n);
	memcpy(data, text, n);
	l->text = data;
	l->n = n;
	l->level = i % 5;
}

int
main(int argc, char **argv)
{
	Line *lines;
	enum { NLINE = 300 };
	unsigned turn = 0;

	tr_init(argc, argv);
	TR_GLOBAL(matchers, "Matcher []");
	TR_GLOBAL(out, "Buf");
	TR_GLOBAL(freesub, "Sub *");
	TR_GLOBAL(gen, "int");
	TR_GLOBAL(bot, "unsigned char *");
	TR_GLOBAL(eot, "unsigned char *");
	TR_CHECK(Inst, cc);
	TR_CHECK(Matcher, stats);
	lines = HEAP_CALLOC(Line, NLINE);
	for(int i = 0; i < NLINE; i++)
		writeline(&lines[i], i);
	for(int i = 0; i < nelem(patterns); i++)
		setup(&matchers[i], patterns[i]);
	while(tr_more()){
		Line *l = &lines[turn % NLINE];
		for(int i = 0; i < nelem(matchers); i++)
			grep(&matchers[i], l, (turn + i) % 2);
		if(++turn % 16 == 0){
			Matcher *m = &matchers[turn/16 % nelem(matchers)];
			teardown(m);
			setup(m, patterns[m - matchers]);
		}
	}
	if(getenv("VERBOSE"))
		for(int i = 0; i < nelem(matchers); i++)
			printf("%s: %lu tries %lu skipped %lu hits %lu replaced, %d states %d resets\n", patterns[i], matchers[i].stats.tries,
				matchers[i].stats.skipped, matchers[i].stats.hits, matchers[i].stats.replaced, matchers[i].dfa.nstate, matchers[i].dfa.resets);
	if(disagreed)
		abort();
	tr_sink = out.n;
	return 0;
}
