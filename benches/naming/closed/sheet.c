/*
 * sheet.c: a workbook whose cells know who depends on them.  Expressions are unions told apart
 * by their first byte, values are made and thrown away while they are evaluated.
 */
#include "../heap.h"
#include <math.h>

typedef int            gboolean;
typedef unsigned char  guint8;
typedef unsigned int   guint;
typedef double         gnum;
#define TRUE 1
#define FALSE 0

#define N_COLS 26
#define N_ROWS 160
#define SEGMENT 32
#define BUCKET_ROWS 8
#define MICRO_FEW 4

typedef enum { VALUE_EMPTY, VALUE_BOOLEAN, VALUE_FLOAT, VALUE_STRING, VALUE_ERROR } ValueType;
typedef enum { OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_LT, OP_GT, OP_EQ, OP_CAT, OP_NEG, OP_CONSTANT, OP_FUNC, OP_CELLREF, OP_RANGE } ExprOp;

typedef struct _Sheet Sheet;
typedef struct _Cell Cell;
typedef union _Expr Expr;

typedef struct _SharedString {
	struct _SharedString *next;
	guint ref_count, hash;
	char str[24];
} SharedString;

typedef struct { ValueType const type; } ValueAny;
typedef struct { ValueType type; gboolean val; } ValueBool;
typedef struct { ValueType type; gnum val; } ValueFloat;
typedef struct { ValueType type; SharedString *val; } ValueStr;
typedef struct { ValueType type; SharedString *mesg; Cell *src; } ValueErr;

typedef union _Value {
	ValueType  type;
	ValueBool  v_bool;
	ValueFloat v_float;
	ValueStr   v_str;
	ValueErr   v_err;
} Value;

typedef struct { int col, row; guint8 col_relative, row_relative; } CellRef;
typedef struct { int col, row; } CellPos;
typedef struct { CellPos start, end; } Range;

typedef struct {
	Cell        *cell;
	Sheet       *sheet;
	CellPos      pos;
	guint        depth;
} EvalPos;

typedef struct _FuncInfo {
	char const *name;
	int         min_args, max_args;
	Value     *(*eval) (EvalPos const *ep, int argc, Expr *const *argv);
	unsigned long calls;
} FuncInfo;

typedef struct { guint8 oper; Expr *value_a, *value_b; } ExprBinary;
typedef struct { guint8 oper; Expr *value; } ExprUnary;
typedef struct { guint8 oper; Value *value; } ExprConstant;
typedef struct { guint8 oper; CellRef ref; } ExprCellRef;
typedef struct { guint8 oper; CellRef a, b; } ExprRange;
typedef struct { guint8 oper; guint8 argc; FuncInfo *func; Expr **argv; } ExprFunction;

union _Expr {
	guint8       oper;
	ExprBinary   binary;
	ExprUnary    unary;
	ExprConstant constant;
	ExprCellRef  cellref;
	ExprRange    range;
	ExprFunction func;
};

typedef struct _ExprTop {
	guint magic, ref_count, hash;
	Expr *expr;
} ExprTop;

enum { DEPENDENT_NEEDS_RECALC = 1, DEPENDENT_BEING_CALCULATED = 2, DEPENDENT_IS_LINKED = 4 };

typedef struct _Dependent {
	guint              flags;
	Sheet             *sheet;
	ExprTop           *texpr;
	struct _Dependent *next_dep, *prev_dep;
} Dependent;

struct _Cell {
	Dependent base;
	CellPos   pos;
	Value    *value;
	SharedString *rendered;
};
#define DEP_TO_CELL(d) ((Cell *) (d))

/* A set of dependents: a few of them lie in the set itself. */
typedef struct {
	int num, size;
	union { Dependent *one; Dependent *few[MICRO_FEW]; Dependent **many; } u;
} MicroHash;

typedef struct _DepSingle { struct _DepSingle *next; CellPos pos; MicroHash deps; } DepSingle;
typedef struct _DepRange { struct _DepRange *next; Range range; MicroHash deps; } DepRange;

typedef struct {
	Dependent  *head, *tail;
	DepRange   *range_hash[N_ROWS / BUCKET_ROWS];
	DepSingle  *single_hash[128];
	guint       count;
} DepContainer;

typedef struct { int pos, outline_level; double size_pts; guint visible : 1, hard_size : 1; } ColRowInfo;
typedef struct { ColRowInfo *info[SEGMENT]; } ColRowSegment;

typedef struct _CellNode { struct _CellNode *next; guint hash; Cell *cell; } CellNode;
typedef struct { CellNode **nodes; guint size, n_nodes; } CellHash;

struct _Sheet {
	char const    *name;
	CellHash       cell_hash;
	DepContainer  *deps;
	ColRowSegment *rows[N_ROWS / SEGMENT];
	ColRowInfo     cols[N_COLS];
	struct { CellPos edit; Range region; } view;
	unsigned long  recalcs;
};

typedef struct {
	Cell *cell;
	Value key;
} SortItem;

static SharedString *string_pool[64];
static Value **value_free;
static int value_n_free;
static Dependent **dirty_queue;
static int dirty_n;
static Sheet *sheets[2];
static FuncInfo functions[];
static struct { unsigned long evals, values, dirtied, rendered; } stats;

static SharedString *
string_get (char const *s)
{
	guint h = 5381;
	SharedString *p;
	for (char const *c = s; *c; c++)
		h = h * 33 + (guint8) *c;
	for (p = string_pool[h % 64]; p; p = p->next)
		if (p->hash == h && !strcmp (p->str, s)) {
			p->ref_count++;
			return p;
		}
	p = HEAP_MALLOC (SharedString);
	p->ref_count = 1;
	p->hash = h;
	snprintf (p->str, sizeof p->str, "%s", s);
	p->next = string_pool[h % 64];
	return string_pool[h % 64] = p;
}

static void
string_unref (SharedString *s)
{
	SharedString **pp = &string_pool[s->hash % 64];
	if (--s->ref_count > 0)
		return;
	while (*pp != s)
		pp = &(*pp)->next;
	*pp = s->next;
	HEAP_FREE (s);
}

/* ---- values ---- */

static Value *
value_new (ValueType type)
{
	if (value_n_free == 0) {
		Value *block = HEAP_CALLOC (Value, 64);
		for (int i = 0; i < 64; i++)
			value_free[value_n_free++] = block + i;
	}
	Value *v = value_free[--value_n_free];
	v->type = type;
	stats.values++;
	return v;
}

static Value *value_new_float (gnum f) { Value *v = value_new (VALUE_FLOAT); v->v_float.val = f; return v; }
static Value *value_new_bool (gboolean b) { Value *v = value_new (VALUE_BOOLEAN); v->v_bool.val = b; return v; }
static Value *value_new_string (char const *s) { Value *v = value_new (VALUE_STRING); v->v_str.val = string_get (s); return v; }

static Value *
value_new_error (EvalPos const *ep, char const *mesg)
{
	Value *v = value_new (VALUE_ERROR);
	v->v_err.mesg = string_get (mesg);
	v->v_err.src = ep->cell;
	return v;
}

static void
value_release (Value *v)
{
	if (!v)
		return;
	if (v->type == VALUE_STRING)
		string_unref (v->v_str.val);
	else if (v->type == VALUE_ERROR)
		string_unref (v->v_err.mesg);
	value_free[value_n_free++] = v;
}

static Value *
value_dup (Value const *src)
{
	if (!src)
		return value_new (VALUE_EMPTY);
	Value *v = value_new (src->type);
	switch (src->type) {
	case VALUE_EMPTY: break;
	case VALUE_BOOLEAN: v->v_bool.val = src->v_bool.val; break;
	case VALUE_FLOAT: v->v_float.val = src->v_float.val; break;
	case VALUE_STRING: (v->v_str.val = src->v_str.val)->ref_count++; break;
	case VALUE_ERROR:
		(v->v_err.mesg = src->v_err.mesg)->ref_count++;
		v->v_err.src = src->v_err.src;
		break;
	}
	return v;
}

static gnum
value_get_as_float (Value const *v)
{
	switch (v->type) {
	case VALUE_BOOLEAN: return v->v_bool.val ? 1 : 0;
	case VALUE_FLOAT: return v->v_float.val;
	case VALUE_STRING: return (gnum) (v->v_str.val->hash % 100);
	default: return 0;
	}
}

/* ---- cells ---- */

static inline guint cellpos_hash (int col, int row) { return (guint) row * 37u + (guint) col * 1009u; }

static NOINLINE Cell *
sheet_cell_get (Sheet const *sheet, int col, int row)
{
	guint h = cellpos_hash (col, row);
	for (CellNode *n = sheet->cell_hash.nodes[h & (sheet->cell_hash.size - 1)]; n; n = n->next)
		if (n->hash == h && n->cell->pos.col == col && n->cell->pos.row == row)
			return n->cell;
	return NULL;
}

static Cell *
sheet_cell_fetch (Sheet *sheet, int col, int row)
{
	Cell *cell = sheet_cell_get (sheet, col, row);
	if (cell)
		return cell;
	cell = HEAP_CALLOC (Cell, 1);
	cell->base.sheet = sheet;
	cell->pos.col = col;
	cell->pos.row = row;
	CellNode *node = HEAP_MALLOC (CellNode);
	node->hash = cellpos_hash (col, row);
	node->cell = cell;
	CellNode **bucket = &sheet->cell_hash.nodes[node->hash & (sheet->cell_hash.size - 1)];
	node->next = *bucket;
	*bucket = node;
	sheet->cell_hash.n_nodes++;
	return cell;
}

static ColRowInfo *
sheet_row_fetch (Sheet *sheet, int row)
{
	ColRowSegment **seg = &sheet->rows[row / SEGMENT];
	if (!*seg)
		*seg = HEAP_CALLOC (ColRowSegment, 1);
	ColRowInfo **info = &(*seg)->info[row % SEGMENT];
	if (!*info) {
		*info = HEAP_CALLOC (ColRowInfo, 1);
		(*info)->pos = row;
		(*info)->size_pts = 12.75;
		(*info)->visible = row % 13 != 5;
	}
	return *info;
}

typedef Value *(*CellIterFunc) (Cell *cell, void *user);

static Value *
sheet_foreach_cell (Sheet *sheet, Range const *r, CellIterFunc callback, void *closure)
{
	for (int row = r->start.row; row <= r->end.row; row++) {
		if (!sheet_row_fetch (sheet, row)->visible)
			continue;
		for (int col = r->start.col; col <= r->end.col; col++) {
			Cell *cell = sheet_cell_get (sheet, col, row);
			Value *res = cell ? callback (cell, closure) : NULL;
			if (res)
				return res;
		}
	}
	return NULL;
}

/* ---- evaluation ---- */

static void dependent_eval (Dependent *dep, guint depth);
static Value *expr_eval (Expr const *expr, EvalPos const *ep);

static inline CellPos
cellref_resolve (CellRef const *ref, EvalPos const *ep)
{
	CellPos p = { ref->col, ref->row };
	if (ref->col_relative)
		p.col = (ep->pos.col + ref->col + N_COLS) % N_COLS;
	if (ref->row_relative)
		p.row = (ep->pos.row + ref->row + N_ROWS) % N_ROWS;
	return p;
}

static Range
range_resolve (ExprRange const *e, EvalPos const *ep)
{
	CellPos a = cellref_resolve (&e->a, ep), b = cellref_resolve (&e->b, ep);
	Range r = { { a.col < b.col ? a.col : b.col, a.row < b.row ? a.row : b.row },
		    { a.col < b.col ? b.col : a.col, a.row < b.row ? b.row : a.row } };
	return r;
}

static NOINLINE Value *
eval_binary (ExprBinary const *e, EvalPos const *ep)
{
	Value *a = expr_eval (e->value_a, ep), *b, *res;
	if (a->type == VALUE_ERROR)
		return a;
	b = expr_eval (e->value_b, ep);
	if (b->type == VALUE_ERROR) {
		value_release (a);
		return b;
	}
	gnum x = value_get_as_float (a), y = value_get_as_float (b);
	switch (e->oper) {
	case OP_ADD: res = value_new_float (x + y); break;
	case OP_SUB: res = value_new_float (x - y); break;
	case OP_MUL: res = value_new_float (x * y); break;
	case OP_DIV: res = y == 0 ? value_new_error (ep, "#DIV/0!") : value_new_float (x / y); break;
	case OP_LT: res = value_new_bool (x < y); break;
	case OP_GT: res = value_new_bool (x > y); break;
	case OP_EQ: res = value_new_bool (x == y); break;
	default: {
		char buf[24];
		snprintf (buf, sizeof buf, "%s%s", a->type == VALUE_STRING ? a->v_str.val->str : "", b->type == VALUE_STRING ? b->v_str.val->str : "");
		res = value_new_string (buf);
	}
	}
	value_release (a);
	value_release (b);
	return res;
}

static Value *
expr_eval (Expr const *expr, EvalPos const *ep)
{
	stats.evals++;
	switch (expr->oper) {
	case OP_CONSTANT:
		return value_dup (expr->constant.value);
	case OP_CELLREF: {
		CellPos p = cellref_resolve (&expr->cellref.ref, ep);
		Cell *cell = sheet_cell_get (ep->sheet, p.col, p.row);
		if (!cell)
			return value_new (VALUE_EMPTY);
		if (cell->base.flags & DEPENDENT_BEING_CALCULATED)
			return value_new_error (ep, "#CIRC!");
		if (cell->base.flags & DEPENDENT_NEEDS_RECALC)
			dependent_eval (&cell->base, ep->depth + 1);
		return value_dup (cell->value);
	}
	case OP_NEG: {
		Value *v = expr_eval (expr->unary.value, ep);
		if (v->type == VALUE_FLOAT)
			v->v_float.val = -v->v_float.val;
		return v;
	}
	case OP_FUNC:
		expr->func.func->calls++;
		return expr->func.func->eval (ep, expr->func.argc, expr->func.argv);
	case OP_RANGE:
		return value_new_error (ep, "#VALUE!");
	default:
		return eval_binary (&expr->binary, ep);
	}
}

typedef struct { gnum sum, min, max; int count; guint depth; Value const *criterion; } Collect;

static Value *
cb_collect (Cell *cell, void *user)
{
	Collect *c = user;
	if (cell->base.flags & DEPENDENT_BEING_CALCULATED)
		return NULL;
	if (cell->base.flags & DEPENDENT_NEEDS_RECALC)
		dependent_eval (&cell->base, c->depth);
	if (!cell->value || (cell->value->type != VALUE_FLOAT && !c->criterion))
		return NULL;
	gnum x = value_get_as_float (cell->value);
	if (c->criterion && x != value_get_as_float (c->criterion))
		return NULL;
	c->sum += x;
	c->count++;
	if (x < c->min) c->min = x;
	if (x > c->max) c->max = x;
	return NULL;
}

static void
collect (EvalPos const *ep, int argc, Expr *const *argv, Collect *c)
{
	c->sum = c->count = 0;
	c->min = HUGE_VAL;
	c->max = -HUGE_VAL;
	c->depth = ep->depth + 1;
	for (int i = 0; i < argc; i++) {
		if (argv[i]->oper == OP_RANGE) {
			Range r = range_resolve (&argv[i]->range, ep);
			sheet_foreach_cell (ep->sheet, &r, cb_collect, c);
		} else {
			Value *v = expr_eval (argv[i], ep);
			c->sum += value_get_as_float (v);
			c->count++;
			value_release (v);
		}
	}
}

static Value *fn_sum (EvalPos const *ep, int argc, Expr *const *argv) { Collect c = { 0 }; collect (ep, argc, argv, &c); return value_new_float (c.sum); }
static Value *fn_average (EvalPos const *ep, int argc, Expr *const *argv) { Collect c = { 0 }; collect (ep, argc, argv, &c); return c.count ? value_new_float (c.sum / c.count) : value_new_error (ep, "#DIV/0!"); }
static Value *fn_max (EvalPos const *ep, int argc, Expr *const *argv) { Collect c = { 0 }; collect (ep, argc, argv, &c); return value_new_float (c.count ? c.max : 0); }

static Value *
fn_countif (EvalPos const *ep, int argc, Expr *const *argv)
{
	Collect c = { 0 };
	Value *criterion = expr_eval (argv[1], ep);
	(void) argc;
	c.criterion = criterion;
	collect (ep, 1, argv, &c);
	value_release (criterion);
	return value_new_float (c.count);
}

static Value *
fn_if (EvalPos const *ep, int argc, Expr *const *argv)
{
	Value *cond = expr_eval (argv[0], ep);
	gboolean yes = value_get_as_float (cond) != 0;
	value_release (cond);
	return yes ? expr_eval (argv[1], ep) : argc > 2 ? expr_eval (argv[2], ep) : value_new_bool (FALSE);
}

static Value *
fn_lookup (EvalPos const *ep, int argc, Expr *const *argv)
{
	Value *key = expr_eval (argv[0], ep);
	Range r = range_resolve (&argv[1]->range, ep);
	gnum want = value_get_as_float (key), best = HUGE_VAL;
	Cell *found = NULL;
	(void) argc;
	for (int row = r.start.row; row <= r.end.row; row++) {
		Cell *cell = sheet_cell_get (ep->sheet, r.start.col, row);
		if (!cell || !cell->value || cell->value->type != VALUE_FLOAT)
			continue;
		gnum d = fabs (cell->value->v_float.val - want);
		if (d < best) {
			best = d;
			found = cell;
		}
	}
	value_release (key);
	return found ? value_dup (found->value) : value_new_error (ep, "#N/A");
}

static FuncInfo functions[] = {
	{ "SUM", 1, 8, fn_sum, 0 }, { "AVERAGE", 1, 8, fn_average, 0 }, { "MAX", 1, 8, fn_max, 0 },
	{ "COUNTIF", 2, 2, fn_countif, 0 }, { "IF", 2, 3, fn_if, 0 }, { "LOOKUP", 2, 2, fn_lookup, 0 },
};

static NOINLINE void
dependent_eval (Dependent *dep, guint depth)
{
	Cell *cell = DEP_TO_CELL (dep);
	dep->flags &= ~DEPENDENT_NEEDS_RECALC;
	if (!dep->texpr || depth > 60)
		return;
	EvalPos ep = { cell, dep->sheet, cell->pos, depth };
	dep->flags |= DEPENDENT_BEING_CALCULATED;
	Value *v = expr_eval (dep->texpr->expr, &ep);
	dep->flags &= ~DEPENDENT_BEING_CALCULATED;
	value_release (cell->value);
	cell->value = v;
	if (cell->rendered) {
		string_unref (cell->rendered);
		cell->rendered = NULL;
	}
	dep->sheet->recalcs++;
}

/* ---- who depends on what ---- */

static void
micro_hash_insert (MicroHash *h, Dependent *dep)
{
	if (h->num == 0)
		h->u.one = dep;
	else if (h->num < MICRO_FEW) {
		if (h->num == 1) {
			Dependent *one = h->u.one;
			h->u.few[0] = one;
		}
		h->u.few[h->num] = dep;
	} else {
		if (h->num == MICRO_FEW) {
			Dependent **many = HEAP_CALLOC (Dependent *, 16);
			for (int i = 0; i < MICRO_FEW; i++)
				many[i] = h->u.few[i];
			h->u.many = many;
			h->size = 16;
		} else if (h->num == h->size)
			h->u.many = HEAP_REALLOC (h->u.many, Dependent *, h->size *= 2);
		h->u.many[h->num] = dep;
	}
	h->num++;
}

#define micro_hash_foreach_dep(dc, dep, code) do {				\
	Dependent *const *e = (dc).num == 1 ? &(dc).u.one			\
		: (dc).num <= MICRO_FEW ? (dc).u.few : (dc).u.many;		\
	for (int i_ = 0; i_ < (dc).num; i_++) {					\
		Dependent *dep = e[i_];						\
		code								\
	}									\
} while (0)

static void
link_single (Sheet *sheet, Dependent *dep, CellPos p)
{
	DepSingle **bucket = &sheet->deps->single_hash[cellpos_hash (p.col, p.row) % 128], *s;
	for (s = *bucket; s; s = s->next)
		if (s->pos.col == p.col && s->pos.row == p.row)
			break;
	if (!s) {
		s = HEAP_CALLOC (DepSingle, 1);
		s->pos = p;
		s->next = *bucket;
		*bucket = s;
	}
	micro_hash_insert (&s->deps, dep);
}

static void
link_range (Sheet *sheet, Dependent *dep, Range const *r)
{
	for (int b = r->start.row / BUCKET_ROWS; b <= r->end.row / BUCKET_ROWS; b++) {
		DepRange **bucket = &sheet->deps->range_hash[b], *d;
		for (d = *bucket; d; d = d->next)
			if (!memcmp (&d->range, r, sizeof *r))
				break;
		if (!d) {
			d = HEAP_CALLOC (DepRange, 1);
			d->range = *r;
			d->next = *bucket;
			*bucket = d;
		}
		micro_hash_insert (&d->deps, dep);
	}
}

static void
link_expr (Expr const *expr, Dependent *dep, EvalPos const *ep)
{
	switch (expr->oper) {
	case OP_CONSTANT: break;
	case OP_CELLREF: link_single (ep->sheet, dep, cellref_resolve (&expr->cellref.ref, ep)); break;
	case OP_RANGE: {
		Range r = range_resolve (&expr->range, ep);
		link_range (ep->sheet, dep, &r);
		break;
	}
	case OP_NEG: link_expr (expr->unary.value, dep, ep); break;
	case OP_FUNC:
		for (int i = 0; i < expr->func.argc; i++)
			link_expr (expr->func.argv[i], dep, ep);
		break;
	default:
		link_expr (expr->binary.value_a, dep, ep);
		link_expr (expr->binary.value_b, dep, ep);
	}
}

static void
dirty (Dependent *dep)
{
	if (dep->flags & DEPENDENT_NEEDS_RECALC)
		return;
	dep->flags |= DEPENDENT_NEEDS_RECALC;
	dirty_queue[dirty_n++] = dep;
	stats.dirtied++;
}

static NOINLINE void
cell_foreach_dep (Cell const *cell)
{
	DepContainer *deps = cell->base.sheet->deps;
	CellPos p = cell->pos;
	for (DepSingle *s = deps->single_hash[cellpos_hash (p.col, p.row) % 128]; s; s = s->next)
		if (s->pos.col == p.col && s->pos.row == p.row)
			micro_hash_foreach_dep (s->deps, dep, { dirty (dep); });
	for (DepRange *d = deps->range_hash[p.row / BUCKET_ROWS]; d; d = d->next)
		if (d->range.start.row <= p.row && p.row <= d->range.end.row && d->range.start.col <= p.col && p.col <= d->range.end.col)
			micro_hash_foreach_dep (d->deps, dep, { dirty (dep); });
}

static void
cell_set_value (Cell *cell, Value *v)
{
	value_release (cell->value);
	cell->value = v;
	dirty_n = 0;
	cell_foreach_dep (cell);
	for (int i = 0; i < dirty_n; i++)
		cell_foreach_dep (DEP_TO_CELL (dirty_queue[i]));
	for (int i = 0; i < dirty_n; i++)
		if (dirty_queue[i]->flags & DEPENDENT_NEEDS_RECALC)
			dependent_eval (dirty_queue[i], 0);
}

/* ---- expressions from text: A1, $A$1, A1:B2, numbers, "text", NAME(...) ---- */

static char const *in;

static Expr *parse_compare (EvalPos const *ep);

static Expr *
expr_new_binary (ExprOp op, Expr *a, Expr *b)
{
	Expr *e = HEAP_CALLOC (Expr, 1);
	e->binary.oper = op;
	e->binary.value_a = a;
	e->binary.value_b = b;
	return e;
}

static void
parse_ref (CellRef *ref, EvalPos const *ep)
{
	ref->col_relative = *in != '$';
	in += !ref->col_relative;
	ref->col = *in++ - 'A';
	ref->row_relative = *in != '$';
	in += !ref->row_relative;
	ref->row = (int) strtol (in, (char **) &in, 10) - 1;
	if (ref->col_relative) ref->col -= ep->pos.col;
	if (ref->row_relative) ref->row -= ep->pos.row;
}

static Expr *
parse_primary (EvalPos const *ep)
{
	Expr *e = HEAP_CALLOC (Expr, 1);
	if (*in == '-') {
		in++;
		e->unary.oper = OP_NEG;
		e->unary.value = parse_primary (ep);
	} else if (*in == '(') {
		in++;
		HEAP_FREE (e);
		e = parse_compare (ep);
		in++;
	} else if (*in == '"') {
		char buf[24];
		int n = 0;
		for (in++; *in != '"'; in++)
			buf[n++] = *in;
		buf[n] = 0;
		in++;
		e->constant.oper = OP_CONSTANT;
		e->constant.value = value_new_string (buf);
	} else if (*in >= '0' && *in <= '9') {
		e->constant.oper = OP_CONSTANT;
		e->constant.value = value_new_float (strtod (in, (char **) &in));
	} else if (*in >= 'A' && in[1] >= 'A') {
		FuncInfo *f = functions;
		while (strncmp (f->name, in, strlen (f->name)))
			f++;
		in += strlen (f->name);
		e->func.oper = OP_FUNC;
		e->func.func = f;
		e->func.argv = HEAP_CALLOC (Expr *, 4);
		do {
			in++;
			e->func.argv[e->func.argc++] = parse_compare (ep);
		} while (*in == ',');
		in++;
	} else {
		CellRef a;
		memset (&a, 0, sizeof a);
		parse_ref (&a, ep);
		if (*in == ':') {
			in++;
			e->range.oper = OP_RANGE;
			e->range.a = a;
			parse_ref (&e->range.b, ep);
		} else {
			e->cellref.oper = OP_CELLREF;
			e->cellref.ref = a;
		}
	}
	return e;
}

static Expr *
parse_term (EvalPos const *ep)
{
	Expr *e = parse_primary (ep);
	while (*in == '*' || *in == '/') {
		ExprOp op = *in++ == '*' ? OP_MUL : OP_DIV;
		e = expr_new_binary (op, e, parse_primary (ep));
	}
	return e;
}

static Expr *
parse_sum (EvalPos const *ep)
{
	Expr *e = parse_term (ep);
	while (*in == '+' || *in == '-' || *in == '&') {
		ExprOp op = *in == '+' ? OP_ADD : *in == '-' ? OP_SUB : OP_CAT;
		in++;
		e = expr_new_binary (op, e, parse_term (ep));
	}
	return e;
}

static Expr *
parse_compare (EvalPos const *ep)
{
	Expr *e = parse_sum (ep);
	while (*in == '<' || *in == '>' || *in == '=') {
		ExprOp op = *in == '<' ? OP_LT : *in == '>' ? OP_GT : OP_EQ;
		in++;
		e = expr_new_binary (op, e, parse_sum (ep));
	}
	return e;
}

static void
cell_set_text (Sheet *sheet, int col, int row, char const *text)
{
	Cell *cell = sheet_cell_fetch (sheet, col, row);
	EvalPos ep = { cell, sheet, cell->pos, 0 };
	Dependent *dep = &cell->base;
	in = text + 1;
	dep->texpr = HEAP_CALLOC (ExprTop, 1);
	dep->texpr->magic = 0x42;
	dep->texpr->ref_count = 1;
	dep->texpr->expr = parse_compare (&ep);
	dep->flags |= DEPENDENT_IS_LINKED | DEPENDENT_NEEDS_RECALC;
	dep->prev_dep = sheet->deps->tail;
	if (dep->prev_dep) dep->prev_dep->next_dep = dep;
	else sheet->deps->head = dep;
	sheet->deps->tail = dep;
	sheet->deps->count++;
	link_expr (dep->texpr->expr, dep, &ep);
}

/* ---- what is shown ---- */

static Value *
cb_render (Cell *cell, void *user)
{
	Sheet *sheet = user;
	ColRowInfo *col = &sheet->cols[cell->pos.col];
	if (!cell->rendered && cell->value) {
		char buf[24];
		int n = 0;
		if (cell->value->type == VALUE_FLOAT) {
			gnum x = fabs (cell->value->v_float.val);
			guint cents = x < 2e7 ? (guint) (x * 100) : 0;
			do {
				buf[n++] = "0123456789"[cents % 10];
				if (n == 2) buf[n++] = '.';
				cents /= 10;
			} while (cents || n < 4);
			buf[n] = 0;
			cell->rendered = string_get (buf);
		} else
			cell->rendered = string_get (cell->value->type == VALUE_STRING ? cell->value->v_str.val->str : "TRUE");
		stats.rendered++;
	}
	if (cell->rendered) {
		double width = 0;
		for (char const *c = cell->rendered->str; *c; c++)
			width += *c == '.' ? 3.1 : 6.4;
		if (width > col->size_pts) col->size_pts = width;
	}
	return NULL;
}

static NOINLINE unsigned long
sheet_sort (Sheet *sheet, SortItem *items, int col)
{
	int n = 0;
	for (int row = 0; row < N_ROWS; row++) {
		Cell *cell = sheet_cell_get (sheet, col, row);
		if (!cell || !cell->value)
			continue;
		items[n].cell = cell;
		items[n++].key = *cell->value;
	}
	for (int gap = n / 2; gap > 0; gap /= 2)
		for (int i = gap; i < n; i++) {
			SortItem t = items[i];
			int j = i;
			for (; j >= gap && value_get_as_float (&items[j - gap].key) > value_get_as_float (&t.key); j -= gap)
				items[j] = items[j - gap];
			items[j] = t;
		}
	return n ? (unsigned long) items[n / 2].cell->pos.row : 0;
}

static Sheet *
sheet_new (char const *name)
{
	static char const *const words[] = { "red", "green", "blue", "ultramarine", "ochre" };
	Sheet *sheet = HEAP_CALLOC (Sheet, 1);
	char text[80];
	sheet->name = name;
	sheet->deps = HEAP_CALLOC (DepContainer, 1);
	sheet->cell_hash.size = 2048;
	sheet->cell_hash.nodes = HEAP_CALLOC (CellNode *, 2048);
	for (int row = 0; row < N_ROWS; row++) {
		for (int col = 0; col < 4; col++)
			sheet_cell_fetch (sheet, col, row)->value = value_new_float (tr_rand () % 1000 / 8.0);
		sheet_cell_fetch (sheet, 4, row)->value = value_new_string (words[tr_rand () % 5]);
		int r = row + 1;
		snprintf (text, sizeof text, "=A%d*B%d+C%d/(D%d-1)", r, r, r, r);
		cell_set_text (sheet, 5, row, text);
		snprintf (text, sizeof text, "=IF(F%d>AVERAGE(A%d:D%d),F%d-$A$1,-B%d)", r, r, r, r, r);
		cell_set_text (sheet, 6, row, text);
		snprintf (text, sizeof text, "=SUM(G%d:G%d)", row < 12 ? 1 : row - 11, r);
		cell_set_text (sheet, 7, row, text);
		if (row % 4 == 0) {
			snprintf (text, sizeof text, "=COUNTIF(E%d:E%d,E%d)", row / 16 * 16 + 1, row / 16 * 16 + 16, r);
			cell_set_text (sheet, 8, row, text);
			snprintf (text, sizeof text, "=LOOKUP(I%d*20,B%d:B%d)", r, row / 32 * 32 + 1, row / 32 * 32 + 32);
			cell_set_text (sheet, 9, row, text);
			snprintf (text, sizeof text, "=E%d&\" \"&E%d", r, r);
			cell_set_text (sheet, 10, row, text);
		}
	}
	cell_set_text (sheet, 11, 0, "=MAX(H1:H160)-SUM(F1:F160)");
	for (Dependent *d = sheet->deps->head; d; d = d->next_dep)
		if (d->flags & DEPENDENT_NEEDS_RECALC)
			dependent_eval (d, 0);
	return sheet;
}

int
main (int argc, char **argv)
{
	unsigned long sum = 0;
	tr_init (argc, argv);
	TR_GLOBAL (string_pool, "SharedString * []");
	TR_GLOBAL (value_free, "Value **");
	TR_GLOBAL (value_n_free, "int");
	TR_GLOBAL (dirty_queue, "Dependent **");
	TR_GLOBAL (dirty_n, "int");
	TR_GLOBAL (sheets, "Sheet * []");
	TR_GLOBAL (functions, "FuncInfo []");
	TR_CHECK (Cell, rendered);
	TR_CHECK (DepRange, deps);
	TR_CHECK (Sheet, recalcs);
	TR_CHECK (FuncInfo, calls);
	value_free = HEAP_CALLOC (Value *, 16384);
	dirty_queue = HEAP_CALLOC (Dependent *, 4096);
	sheets[0] = sheet_new ("Budget");
	sheets[1] = sheet_new ("Stock");
	SortItem *items = HEAP_CALLOC (SortItem, N_ROWS);
	while (tr_more ()) {
		Sheet *sheet = sheets[tr_rand () & 1];
		sheet->view.edit.col = tr_rand () % 5;
		sheet->view.edit.row = tr_rand () % N_ROWS;
		Cell *cell = sheet_cell_get (sheet, sheet->view.edit.col, sheet->view.edit.row);
		if (cell->pos.col == 4)
			cell_set_value (cell, value_dup (sheet_cell_get (sheet, 4, (cell->pos.row + 1) % N_ROWS)->value));
		else
			cell_set_value (cell, value_new_float (tr_rand () % 1000 / 8.0));
		int top = cell->pos.row / 8 * 8;
		Range *region = &sheet->view.region;
		region->start = (CellPos) { 0, top };
		region->end = (CellPos) { 11, top + 7 };
		sheet_foreach_cell (sheet, region, cb_render, sheet);
		if (tr_rand () % 8 == 0)
			sum += sheet_sort (sheet, items, 5 + tr_rand () % 3);
	}
	if (getenv ("VERBOSE"))
		printf ("%lu evals, %lu values, %lu dirtied, %lu rendered, recalcs %lu, sums %lu, free %d\n", stats.evals, stats.values, stats.dirtied, stats.rendered, sheets[0]->recalcs, functions[0].calls, value_n_free);
	tr_sink = sum + stats.evals;
	return 0;
}
