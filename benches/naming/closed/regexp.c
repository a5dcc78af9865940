/*
 * Regular expressions over lines: a parser, a program of instructions, three ways to run it -
 * threads in lock step with counted captures, a backtracker with a map of what was visited, and
 * states of a deterministic machine made when they are met.
 */
#include "../heap.h"

#define nil ((void*)0)
#define nelem(x) ((int)(sizeof(x)/sizeof((x)[0])))

typedef unsigned char uchar;
typedef unsigned int uint;

enum { MAXSUB = 10, NPATTERN = 9, NLINE = 160, MAXSTATES = 48, NCLASSBITS = 8 };

typedef struct Regexp Regexp;
typedef struct Class Class;
typedef struct Inst Inst;
typedef struct Prog Prog;
typedef struct Sub Sub;
typedef struct Thread Thread;
typedef struct ThreadList ThreadList;
typedef struct DState DState;
typedef struct Dfa Dfa;
typedef struct Job Job;
typedef struct Matcher Matcher;
typedef struct Line Line;
typedef struct Out Out;

enum { Alt = 1, Cat, Lit, Dot, Set, Paren, Quest, Star, Plus, Bol, Eol, Empty };

struct Class {
	Class *next;
	uint bits[256/32];
	int negated;
};

struct Regexp {
	int type;
	int n;
	int ch;
	int nongreedy;
	Class *set;
	Regexp *left;
	Regexp *right;
};

enum { Char = 1, Match, Jmp, Split, Any, Range, Save, Abol, Aeol };

struct Inst {
	uchar opcode;
	uchar c;
	short n;
	int gen;
	Class *set;
	Inst *x;
	Inst *y;
};

struct Prog {
	Inst *start;
	int len;
	int nsub;
	uchar byteclass[256];
	int nclass;
};

struct Sub {
	int ref;
	int nsub;
	union {
		const char *sub[MAXSUB*2];
		Sub *nextfree;
	} u;
};

struct Thread {
	Inst *pc;
	Sub *sub;
};

struct ThreadList {
	int n;
	Thread *t;
};

struct DState {
	DState *left;
	DState *right;
	int ninst;
	uint hash;
	uchar ismatch;
	Inst **inst;
	DState **next;		/* by class of byte */
};

struct Dfa {
	DState *root;
	DState *start;
	DState **all;
	int nstates;
	int resets;
	Inst **stack1, **stack2;
};

struct Job {
	Inst *pc;
	const char *sp;
	int arg;
	const char *old;
};

struct Matcher {
	Matcher *next;
	const char *pattern;
	Prog *prog;
	Dfa *dfa;
	int (*run)(Matcher*, Line*, const char**);
	ulong hits, tried;
};

struct Line {
	Line *next;
	char *text;
	int len;
	ushort matched;
	ushort number;
};

struct Out {
	char *base, *cur, *end;
	ulong flushed;
};

static struct {
	const char *p;		/* where the parser is */
	int nparen;
	Class *classes;
	Regexp *free;
} parser;

static struct { ulong steps, copies, allocs, states, jobs; } stat;
static ThreadList clist, nlist;
static Sub *freesub;
static int gen;
static uint *visited;
static Job *jobs;
static Matcher *matchers;
static Line *lines;
static Out out;

/* ---- parsing ---- */

static Regexp*
reg(int type, Regexp *left, Regexp *right)
{
	Regexp *r = HEAP_MALLOC(Regexp);

	memset(r, 0, sizeof *r);
	r->type = type;
	r->left = left;
	r->right = right;
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

static void
addrange(Class *c, int lo, int hi)
{
	for(; lo <= hi; lo++)
		c->bits[lo/32] |= 1u << lo%32;
}

static Regexp*
parseset(void)
{
	Class *c = HEAP_CALLOC(Class, 1);
	Regexp *r = reg(Set, nil, nil);

	if(*parser.p == '^'){
		c->negated = 1;
		parser.p++;
	}
	while(*parser.p && *parser.p != ']'){
		int lo = (uchar)*parser.p++, hi = lo;
		if(parser.p[0] == '-' && parser.p[1] != ']'){
			hi = (uchar)parser.p[1];
			parser.p += 2;
		}
		addrange(c, lo, hi);
	}
	parser.p++;
	if(c->negated)
		for(int i = 0; i < nelem(c->bits); i++)
			c->bits[i] = ~c->bits[i];
	c->next = parser.classes;
	parser.classes = c;
	r->set = c;
	return r;
}

static Regexp *parsealt(void);

static Regexp*
parseatom(void)
{
	Regexp *r;
	int c = *parser.p++;

	switch(c){
	case '(':
		if(parser.p[0] == '?' && parser.p[1] == ':'){
			parser.p += 2;
			r = parsealt();
		}else{
			int n = ++parser.nparen;
			r = reg(Paren, parsealt(), nil);
			r->n = n;
		}
		parser.p++;
		return r;
	case '[':
		return parseset();
	case '.':
		return reg(Dot, nil, nil);
	case '^':
		return reg(Bol, nil, nil);
	case '$':
		return reg(Eol, nil, nil);
	case '\\':
		c = *parser.p++;
		/* fall through */
	default:
		r = reg(Lit, nil, nil);
		r->ch = c;
		return r;
	}
}

static Regexp*
parserepeat(void)
{
	Regexp *r = parseatom();

	while(*parser.p && strchr("*+?", *parser.p)){
		int c = *parser.p++;
		r = reg(c == '*' ? Star : c == '+' ? Plus : Quest, r, nil);
		if(*parser.p == '?'){
			r->nongreedy = 1;
			parser.p++;
		}
	}
	return r;
}

static Regexp*
parsecat(void)
{
	Regexp *r = nil;

	while(*parser.p && *parser.p != '|' && *parser.p != ')'){
		Regexp *next = parserepeat();
		r = r ? reg(Cat, r, next) : next;
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

/* ---- compiling ---- */

static int
count(Regexp *r)
{
	switch(r->type){
	case Alt:	return 2 + count(r->left) + count(r->right);
	case Cat:	return count(r->left) + count(r->right);
	case Paren:	return 2 + count(r->left);
	case Quest:	return 1 + count(r->left);
	case Star:	return 2 + count(r->left);
	case Plus:	return 1 + count(r->left);
	case Empty:	return 0;
	}
	return 1;
}

static Inst *pc;

static void
emit(Regexp *r)
{
	Inst *p1, *p2, *t;

	switch(r->type){
	case Alt:
		pc->opcode = Split;
		p1 = pc++;
		p1->x = pc;
		emit(r->left);
		pc->opcode = Jmp;
		p2 = pc++;
		p1->y = pc;
		emit(r->right);
		p2->x = pc;
		break;
	case Cat:
		emit(r->left);
		emit(r->right);
		break;
	case Lit:
		pc->opcode = Char;
		pc->c = (uchar)r->ch;
		pc++;
		break;
	case Dot:
		pc++->opcode = Any;
		break;
	case Set:
		pc->opcode = Range;
		pc->set = r->set;
		pc++;
		break;
	case Bol:
		pc++->opcode = Abol;
		break;
	case Eol:
		pc++->opcode = Aeol;
		break;
	case Paren:
		pc->opcode = Save;
		pc->n = 2*r->n;
		pc++;
		emit(r->left);
		pc->opcode = Save;
		pc->n = 2*r->n + 1;
		pc++;
		break;
	case Quest:
	case Star:
		pc->opcode = Split;
		p1 = pc++;
		p1->x = pc;
		emit(r->left);
		if(r->type == Star){
			pc->opcode = Jmp;
			pc->x = p1;
			pc++;
		}
		p1->y = pc;
		if(r->nongreedy){
			t = p1->x;
			p1->x = p1->y;
			p1->y = t;
		}
		break;
	case Plus:
		p1 = pc;
		emit(r->left);
		pc->opcode = Split;
		pc->x = p1;
		p2 = pc++;
		p2->y = pc;
		if(r->nongreedy){
			p2->y = p1;
			p2->x = pc;
		}
		break;
	}
}

/* Bytes that no instruction tells apart have one class. */
static void
classify(Prog *p)
{
	int b, i, j;

	p->nclass = 0;
	for(b = 0; b < 256; b++){
		for(i = 0; i < b; i++){
			for(j = 0; j < p->len; j++){
				Inst *in = &p->start[j];
				if(in->opcode == Char && (in->c == b) != (in->c == i))
					break;
				if(in->opcode == Range && (in->set->bits[b/32]>>b%32 & 1) != (in->set->bits[i/32]>>i%32 & 1))
					break;
			}
			if(j == p->len)
				break;
		}
		p->byteclass[b] = i < b ? p->byteclass[i] : p->nclass++;
	}
}

static Prog*
compile(const char *pattern)
{
	Regexp *r;
	Prog *p = HEAP_CALLOC(Prog, 1);
	int n;

	parser.p = pattern;
	parser.nparen = 0;
	r = parsealt();
	n = count(r) + 3;
	p->start = HEAP_CALLOC(Inst, n);
	pc = p->start;
	pc++->opcode = Save;
	emit(r);
	pc->opcode = Save;
	pc->n = 1;
	pc++;
	pc++->opcode = Match;
	p->len = pc - p->start;
	p->nsub = 2*(parser.nparen + 1);
	freereg(r);
	classify(p);
	return p;
}

/* ---- threads in lock step ---- */

static Sub*
newsub(int n)
{
	Sub *s = freesub;

	if(s)
		freesub = s->u.nextfree;
	else{
		s = HEAP_MALLOC(Sub);
		stat.allocs++;
	}
	s->nsub = n;
	s->ref = 1;
	return s;
}

static inline Sub*
incref(Sub *s)
{
	s->ref++;
	return s;
}

static inline void
decref(Sub *s)
{
	if(--s->ref == 0){
		s->u.nextfree = freesub;
		freesub = s;
	}
}

static Sub*
update(Sub *s, int i, const char *p)
{
	if(s->ref > 1){
		Sub *t = newsub(s->nsub);
		for(int j = 0; j < s->nsub; j++)
			t->u.sub[j] = s->u.sub[j];
		s->ref--;
		s = t;
		stat.copies++;
	}
	s->u.sub[i] = p;
	return s;
}

static inline int
inclass(const Class *c, int ch)
{
	return c->bits[ch/32] >> ch%32 & 1;
}

static void
addthread(ThreadList *l, Inst *pc, Sub *sub, Line *line, const char *sp)
{
	if(pc->gen == gen){
		decref(sub);
		return;
	}
	pc->gen = gen;
	switch(pc->opcode){
	default:
		l->t[l->n].pc = pc;
		l->t[l->n].sub = sub;
		l->n++;
		break;
	case Jmp:
		addthread(l, pc->x, sub, line, sp);
		break;
	case Split:
		addthread(l, pc->x, incref(sub), line, sp);
		addthread(l, pc->y, sub, line, sp);
		break;
	case Save:
		addthread(l, pc+1, update(sub, pc->n, sp), line, sp);
		break;
	case Abol:
		if(sp == line->text)
			addthread(l, pc+1, sub, line, sp);
		else
			decref(sub);
		break;
	case Aeol:
		if(sp == line->text + line->len)
			addthread(l, pc+1, sub, line, sp);
		else
			decref(sub);
		break;
	}
}

static NOINLINE int
pikevm(Matcher *m, Line *line, const char **subp)
{
	Prog *prog = m->prog;
	ThreadList *cl = &clist, *nl = &nlist, *tmp;
	Sub *matched = nil;
	const char *sp, *end = line->text + line->len;
	int i;

	cl->n = nl->n = 0;
	gen++;
	for(sp = line->text; ; sp++){
		if(matched == nil){
			Sub *s = newsub(prog->nsub);
			for(i = 0; i < prog->nsub; i++)
				s->u.sub[i] = nil;
			addthread(cl, prog->start, s, line, sp);
		}
		if(cl->n == 0)
			break;
		gen++;
		for(i = 0; i < cl->n; i++){
			Inst *pc = cl->t[i].pc;
			Sub *sub = cl->t[i].sub;
			stat.steps++;
			switch(pc->opcode){
			case Char:
				if(sp == end || (uchar)*sp != pc->c){
					decref(sub);
					break;
				}
				addthread(nl, pc+1, sub, line, sp+1);
				break;
			case Any:
				if(sp == end){
					decref(sub);
					break;
				}
				addthread(nl, pc+1, sub, line, sp+1);
				break;
			case Range:
				if(sp == end || !inclass(pc->set, (uchar)*sp)){
					decref(sub);
					break;
				}
				addthread(nl, pc+1, sub, line, sp+1);
				break;
			case Match:
				if(matched)
					decref(matched);
				matched = sub;
				for(i++; i < cl->n; i++)
					decref(cl->t[i].sub);
				break;
			}
		}
		tmp = cl;
		cl = nl;
		nl = tmp;
		nl->n = 0;
		if(sp == end)
			break;
	}
	for(i = 0; i < cl->n; i++)
		decref(cl->t[i].sub);
	if(matched == nil)
		return 0;
	for(i = 0; i < prog->nsub; i++)
		subp[i] = matched->u.sub[i];
	decref(matched);
	return 1;
}

/* ---- backtracking with a map of visited places ---- */

static inline int
push(int n, Inst *pc, const char *sp, int arg, const char *old)
{
	Job *j = &jobs[n];

	j->pc = pc;
	j->sp = sp;
	j->arg = arg;
	j->old = old;
	return n + 1;
}

static NOINLINE int
backtrack(Matcher *m, Line *line, const char **sub)
{
	Prog *prog = m->prog;
	const char *end = line->text + line->len;
	int njob, width = line->len + 1;

	memset(visited, 0, (size_t)(prog->len*width/32 + 1)*sizeof visited[0]);
	for(const char *from = line->text; from <= end; from++){
		njob = push(0, prog->start, from, -1, nil);
		while(njob > 0){
			Job *j = &jobs[--njob];
			Inst *pc = j->pc;
			const char *sp = j->sp;
			int bit;

			stat.jobs++;
			if(j->arg >= 0){
				sub[j->arg] = j->old;
				continue;
			}
		again:
			bit = (int)(pc - prog->start)*width + (int)(sp - line->text);
			if(visited[bit/32] >> bit%32 & 1)
				continue;
			visited[bit/32] |= 1u << bit%32;
			switch(pc->opcode){
			case Char:
				if(sp == end || (uchar)*sp != pc->c)
					continue;
				sp++, pc++;
				goto again;
			case Any:
				if(sp == end)
					continue;
				sp++, pc++;
				goto again;
			case Range:
				if(sp == end || !inclass(pc->set, (uchar)*sp))
					continue;
				sp++, pc++;
				goto again;
			case Jmp:
				pc = pc->x;
				goto again;
			case Split:
				njob = push(njob, pc->y, sp, -1, nil);
				pc = pc->x;
				goto again;
			case Save:
				njob = push(njob, pc, nil, pc->n, sub[pc->n]);
				sub[pc->n] = sp;
				pc++;
				goto again;
			case Abol:
				if(sp != line->text)
					continue;
				pc++;
				goto again;
			case Aeol:
				if(sp != end)
					continue;
				pc++;
				goto again;
			case Match:
				return 1;
			}
		}
	}
	return 0;
}

/* ---- a machine made when needed; binary tree of its states ---- */

static int
cmpstate(const DState *d, Inst **list, int n, uint hash)
{
	if(d->hash != hash)
		return d->hash < hash ? -1 : 1;
	if(d->ninst != n)
		return d->ninst < n ? -1 : 1;
	for(int i = 0; i < n; i++)
		if(d->inst[i] != list[i])
			return d->inst[i] < list[i] ? -1 : 1;
	return 0;
}

static void
resetdfa(Dfa *d)
{
	for(int i = 0; i < d->nstates; i++){
		HEAP_FREE(d->all[i]->inst);
		HEAP_FREE(d->all[i]->next);
		HEAP_FREE(d->all[i]);
	}
	d->root = d->start = nil;
	d->nstates = 0;
	d->resets++;
}

static DState*
getstate(Matcher *m, Inst **list, int n)
{
	Dfa *dfa = m->dfa;
	DState **dp = &dfa->root, *d;
	uint hash = n;

	for(int i = 0; i < n; i++)
		hash = hash*31 + (uint)(list[i] - m->prog->start);
	while((d = *dp) != nil){
		int c = cmpstate(d, list, n, hash);
		if(c == 0)
			return d;
		dp = c < 0 ? &d->left : &d->right;
	}
	d = HEAP_CALLOC(DState, 1);
	d->hash = hash;
	d->ninst = n;
	d->inst = HEAP_CALLOC(Inst*, m->prog->len);
	d->next = HEAP_CALLOC(DState*, m->prog->nclass);
	for(int i = 0; i < n; i++){
		d->inst[i] = list[i];
		d->ismatch |= list[i]->opcode == Match;
	}
	*dp = d;
	dfa->all[dfa->nstates++] = d;
	stat.states++;
	return d;
}

static int
follow(Inst **list, int n, Inst **stack, Inst *from)
{
	int top = 0;

	stack[top++] = from;
	while(top > 0){
		Inst *pc = stack[--top];
		if(pc->gen == gen)
			continue;
		pc->gen = gen;
		switch(pc->opcode){
		case Jmp:
			stack[top++] = pc->x;
			break;
		case Split:
			stack[top++] = pc->y;
			stack[top++] = pc->x;
			break;
		case Save:
		case Abol:
		case Aeol:
			stack[top++] = pc+1;
			break;
		default:
			list[n++] = pc;
		}
	}
	return n;
}

static NOINLINE DState*
nextstate(Matcher *m, DState *d, int c)
{
	Inst **list = m->dfa->stack1, **stack = m->dfa->stack2;
	int n = 0;

	gen++;
	for(int i = 0; i < d->ninst; i++){
		Inst *pc = d->inst[i];
		if((pc->opcode == Char && pc->c == c) || pc->opcode == Any || (pc->opcode == Range && inclass(pc->set, c)))
			n = follow(list, n, stack, pc+1);
	}
	n = follow(list, n, stack, m->prog->start);
	if(m->dfa->nstates == MAXSTATES){
		resetdfa(m->dfa);
		return getstate(m, list, n);
	}
	return d->next[m->prog->byteclass[c]] = getstate(m, list, n);
}

static NOINLINE int
rundfa(Matcher *m, Line *line, const char **sub)
{
	const uchar *p = (const uchar*)line->text, *end = p + line->len, *map = m->prog->byteclass;
	DState *d = m->dfa->start, *next;

	if(d == nil){
		gen++;
		d = getstate(m, m->dfa->stack1, follow(m->dfa->stack1, 0, m->dfa->stack2, m->prog->start));
		m->dfa->start = d;
	}
	while(p < end && !d->ismatch){
		next = d->next[map[*p]];
		if(next == nil)
			next = nextstate(m, d, *p);
		d = next;
		p++;
	}
	sub[0] = line->text;
	sub[1] = (const char*)p;
	return d->ismatch;
}

/* ---- lines in, lines out ---- */

static void
put(Out *o, const char *s, const char *e)
{
	while(s < e){
		if(o->cur == o->end){
			o->flushed += o->cur - o->base;
			o->cur = o->base;
		}
		*o->cur++ = *s++;
	}
}

static NOINLINE void
substitute(Line *l, Matcher *m, const char **sub)
{
	put(&out, l->text, sub[0]);
	for(int i = m->prog->nsub/2 - 1; i >= 0; i--)
		if(sub[2*i] && sub[2*i + 1])
			put(&out, sub[2*i], sub[2*i + 1]);
	put(&out, sub[1], l->text + l->len);
}

static void
addpattern(const char *pattern, int (*run)(Matcher*, Line*, const char**))
{
	Matcher *m = HEAP_CALLOC(Matcher, 1);

	m->pattern = pattern;
	m->prog = compile(pattern);
	m->run = run;
	if(run == rundfa){
		m->dfa = HEAP_CALLOC(Dfa, 1);
		m->dfa->all = HEAP_CALLOC(DState*, MAXSTATES);
		m->dfa->stack1 = HEAP_CALLOC(Inst*, 2*m->prog->len);
		m->dfa->stack2 = HEAP_CALLOC(Inst*, 2*m->prog->len);
	}
	m->next = matchers;
	matchers = m;
}

static void
addlines(void)
{
	static const char *const words[] = {
		"error", "warning:", "2026-11-21", "GET", "/index.html", "user=mary", "10.0.0.17", "aaaa", "timeout",
		"(none)", "x=1", "retry", "17ms", "foo@bar.org", "POST", "404", "ok", "size=4096",
	};

	for(int i = 0; i < NLINE; i++){
		Line *l = HEAP_CALLOC(Line, 1);
		int n = 5 + tr_rand()%9;
		l->text = HEAP_CALLOC(char, 192);
		l->number = i;
		while(n--){
			const char *w = words[tr_rand()%nelem(words)];
			while(*w)
				l->text[l->len++] = *w++;
			if(n)
				l->text[l->len++] = ' ';
		}
		l->next = lines;
		lines = l;
	}
}

int
main(int argc, char **argv)
{
	const char *sub[2*MAXSUB];

	tr_init(argc, argv);
	TR_GLOBAL(clist, "ThreadList");
	TR_GLOBAL(nlist, "ThreadList");
	TR_GLOBAL(freesub, "Sub *");
	TR_GLOBAL(gen, "int");
	TR_GLOBAL(jobs, "Job *");
	TR_GLOBAL(visited, "unsigned int *");
	TR_GLOBAL(matchers, "Matcher *");
	TR_GLOBAL(lines, "Line *");
	TR_GLOBAL(out, "Out");
	TR_CHECK(Inst, set);
	TR_CHECK(Sub, u);
	TR_CHECK(DState, next);
	TR_CHECK(Matcher, tried);
	clist.t = HEAP_CALLOC(Thread, 256);
	nlist.t = HEAP_CALLOC(Thread, 256);
	jobs = HEAP_CALLOC(Job, 16384);
	visited = HEAP_CALLOC(unsigned int, 2048);
	out.base = out.cur = HEAP_CALLOC(char, 8192);
	out.end = out.base + 8192;
	addlines();
	addpattern("user=([a-z]+) .*(size)=([0-9]+)", pikevm);
	addpattern("([a-z]+)@([a-z]+)\\.(org|com)", pikevm);
	addpattern("(GET|POST) (/[a-z.]*)(.*)$", backtrack);
	addpattern("^(error|warning:) ([^ ]+)+ ok", backtrack);
	addpattern("([0-9]+)\\.([0-9]+)\\.([0-9]+)\\.([0-9]+)", backtrack);
	addpattern("(a|aa|aaa)+b|(x|y)=[0-9].*404.*retry", rundfa);
	addpattern("t[a-z]*out.*(17ms|POST)", rundfa);
	addpattern("[0-9][0-9]-.*e.*r.*[mn].*[0-9]x", rundfa);
	addpattern("(re|e)(r|t)(r|ry).*\\(none\\).*(o|k)+$", rundfa);
	while(tr_more())
		for(Line *l = lines; l != nil; l = l->next){
			l->matched = 0;
			for(Matcher *m = matchers; m != nil; m = m->next){
				for(int i = 0; i < m->prog->nsub; i++)
					sub[i] = nil;
				m->tried++;
				if(!m->run(m, l, sub))
					continue;
				m->hits++;
				l->matched++;
				if(m->dfa == nil)
					substitute(l, m, sub);
			}
		}
	if(getenv("VERBOSE"))
		for(Matcher *m = matchers; m != nil; m = m->next)
			printf("%-50s %d insts %d classes %lu of %lu %d\n", m->pattern, m->prog->len, m->prog->nclass, m->hits, m->tried, m->dfa ? m->dfa->resets : 0);
	tr_sink = stat.steps + out.flushed;
	return 0;
}
