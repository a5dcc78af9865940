/* A solver for propositional formulas: reads DIMACS, removes subsumed clauses, tries local search,
 * then learns clauses from conflicts (two watched literals, activities in a heap, restarts, reduction).
 */
#include "../heap.h"
#include <limits.h>
#include <stdbool.h>

#define STACK(TYPE) \
  struct { TYPE * begin; TYPE * end; TYPE * allocated; }

#define SIZE(S) ((size_t) ((S).end - (S).begin))
#define EMPTY(S) ((S).end == (S).begin)
#define CLEAR(S) ((S).end = (S).begin)
#define POP(S) (*--(S).end)
#define TOP(S) ((S).end[-1])

#define PUSH(TYPE, S, E) \
  do { \
    if ((S).end == (S).allocated) { \
      size_t old_size = SIZE (S), new_size = old_size ? 2 * old_size : 16; \
      (S).begin = HEAP_REALLOC ((S).begin, TYPE, new_size); \
      (S).end = (S).begin + old_size; \
      (S).allocated = (S).begin + new_size; \
    } \
    *(S).end++ = (E); \
  } while (0)

#define RELEASE(S) (HEAP_FREE ((S).begin), (S).begin = (S).end = (S).allocated = 0)

#define NOT(LIT) ((LIT) ^ 1u)
#define VAR(LIT) ((LIT) >> 1)
#define INVALID UINT_MAX

typedef unsigned lit_t;
typedef signed char val_t;

typedef struct Clause Clause;
typedef struct Watch Watch;
typedef struct Variable Variable;
typedef struct Level Level;
typedef struct Solver Solver;
typedef struct Walker Walker;
typedef struct Occurrences Occurrences;

struct Clause {
  uint64_t signature;
  unsigned glue : 20;
  unsigned redundant : 1;
  unsigned garbage : 1;
  unsigned used : 2;
  unsigned reason : 1;
  unsigned size;
  lit_t literals[];
};

typedef STACK (Clause *) Clauses;
typedef STACK (lit_t) Literals;

struct Watch {
  Clause * clause;
  lit_t blocking;
  bool binary;
};

typedef STACK (Watch) Watches;

struct Variable {
  unsigned level;
  unsigned trail;
  Clause * reason;
  double activity;
  int heap_position;
  val_t phase, best;
  bool seen, poisoned;
  struct { unsigned short picked, flipped; } local;
};

struct Level {
  unsigned trail;
  lit_t decision;
  struct { unsigned count, lowest; } seen;
};

struct Occurrences {
  unsigned count;
  Clause ** clauses;
};

struct Walker {
  Solver * solver;
  struct Counter { unsigned satisfied; lit_t critical; unsigned position; } * counters;
  unsigned * broken;
  unsigned nbroken;
  val_t * values;
  float * scores;
  float table[32];
  unsigned flips, minimum;
};

struct Solver {
  unsigned vars;
  val_t * values;
  Variable * variables;
  Watches * watches;
  Clauses irredundant, redundant;
  Literals trail, clause, minimized;
  STACK (Level) levels;
  STACK (unsigned) heap, analyzed;
  unsigned propagated;
  double increment;
  bool inconsistent;
  Occurrences * occurrences;
  union {
    struct { unsigned restart, reduce, rephase; } limit;
    unsigned limits[3];
  };
  struct Averages { double fast, slow, trail; } averages;
};

static struct Statistics {
  uint64_t conflicts, decisions, propagations, ticks, restarts, reductions, subsumed, minimized, flips;
  uint64_t satisfiable, unsatisfiable, unknown;
} statistics;

static struct Options {
  double decay, restart_margin;
  unsigned reduce_interval, reduce_fraction, tier1, walk_flips;
} options = { 0.95, 1.1, 150, 50, 2, 300 };

/*------------------------------------------------------------------------*/

static bool
less_active (const Solver * solver, unsigned a, unsigned b)
{
  return solver->variables[a].activity < solver->variables[b].activity;
}

static void
put_heap (Solver * solver, unsigned position, unsigned idx)
{
  solver->heap.begin[position] = idx;
  solver->variables[idx].heap_position = (int) position;
}

static void
heap_up (Solver * solver, unsigned idx)
{
  unsigned position = (unsigned) solver->variables[idx].heap_position;
  while (position) {
    unsigned parent = (position - 1) / 2, other = solver->heap.begin[parent];
    if (!less_active (solver, other, idx))
      break;
    put_heap (solver, position, other);
    position = parent;
  }
  put_heap (solver, position, idx);
}

static NOINLINE void
heap_down (Solver * solver, unsigned idx)
{
  unsigned position = (unsigned) solver->variables[idx].heap_position;
  const unsigned size = (unsigned) SIZE (solver->heap);
  for (;;) {
    unsigned child = 2 * position + 1, other;
    if (child >= size)
      break;
    if (child + 1 < size && less_active (solver, solver->heap.begin[child], solver->heap.begin[child + 1]))
      child++;
    other = solver->heap.begin[child];
    if (!less_active (solver, idx, other))
      break;
    put_heap (solver, position, other);
    position = child;
  }
  put_heap (solver, position, idx);
}

static void
push_heap (Solver * solver, unsigned idx)
{
  Variable * v = solver->variables + idx;
  if (v->heap_position >= 0)
    return;
  v->heap_position = (int) SIZE (solver->heap);
  PUSH (unsigned, solver->heap, idx);
  heap_up (solver, idx);
}

static unsigned
pop_heap (Solver * solver)
{
  unsigned idx = solver->heap.begin[0], last = POP (solver->heap);
  solver->variables[idx].heap_position = -1;
  if (last != idx) {
    put_heap (solver, 0, last);
    heap_down (solver, last);
  }
  return idx;
}

static NOINLINE void
bump_variable (Solver * solver, unsigned idx)
{
  Variable * v = solver->variables + idx;
  v->activity += solver->increment;
  if (v->activity > 1e100) {
    for (unsigned i = 0; i < solver->vars; i++)
      solver->variables[i].activity *= 1e-100;
    solver->increment *= 1e-100;
  }
  if (v->heap_position >= 0)
    heap_up (solver, idx);
}

/*------------------------------------------------------------------------*/

static void
watch_literal (Solver * solver, lit_t lit, lit_t blocking, Clause * c)
{
  Watch watch = { c, blocking, c->size == 2 };
  PUSH (Watch, solver->watches[lit], watch);
}

static Clause *
new_clause (Solver * solver, const lit_t * literals, unsigned size, bool redundant, unsigned glue)
{
  const size_t bytes = sizeof (Clause) + ((size + 1) & ~1u) * sizeof (lit_t);
  Clause * c = HEAP_FLEXIBLE (Clause, bytes);
  c->signature = 0;
  c->glue = glue;
  c->redundant = redundant;
  c->garbage = c->reason = 0;
  c->used = redundant;
  c->size = size;
  for (unsigned i = 0; i < size; i++) {
    c->literals[i] = literals[i];
    c->signature |= 1ull << (VAR (literals[i]) * 7 & 63);
  }
  if (redundant)
    PUSH (Clause *, solver->redundant, c);
  else
    PUSH (Clause *, solver->irredundant, c);
  return c;
}

static void
watch_clause (Solver * solver, Clause * c)
{
  watch_literal (solver, c->literals[0], c->literals[1], c);
  watch_literal (solver, c->literals[1], c->literals[0], c);
}

static void
assign (Solver * solver, lit_t lit, Clause * reason)
{
  Variable * v = solver->variables + VAR (lit);
  v->level = (unsigned) SIZE (solver->levels);
  v->trail = (unsigned) SIZE (solver->trail);
  v->reason = reason;
  solver->values[lit] = 1;
  solver->values[NOT (lit)] = -1;
  PUSH (unsigned, solver->trail, lit);
}

static NOINLINE Clause *
propagate (Solver * solver)
{
  val_t * values = solver->values;
  Clause * conflict = 0;
  while (!conflict && solver->propagated < SIZE (solver->trail)) {
    const lit_t lit = solver->trail.begin[solver->propagated++], not_lit = NOT (lit);
    Watches * ws = solver->watches + not_lit;
    Watch * q = ws->begin, * p = q, * end = ws->end;
    statistics.propagations++;
    while (p != end) {
      const Watch w = *q++ = *p++;
      const val_t b = values[w.blocking];
      Clause * c = w.clause;
      if (b > 0)
	continue;
      if (w.binary) {
	if (b < 0) {
	  conflict = c;
	  break;
	}
	assign (solver, w.blocking, c);
	continue;
      }
      lit_t * literals = c->literals, * end_literals = literals + c->size, * r;
      const lit_t other = literals[0] ^ literals[1] ^ not_lit;
      statistics.ticks++;
      if (values[other] > 0) {
	q[-1].blocking = other;
	continue;
      }
      for (r = literals + 2; r != end_literals; r++)
	if (values[*r] >= 0)
	  break;
      if (r != end_literals) {
	const lit_t replacement = *r;
	literals[0] = other;
	literals[1] = replacement;
	*r = not_lit;
	watch_literal (solver, replacement, other, c);
	q--;
      } else if (values[other] < 0) {
	conflict = c;
	break;
      } else
	assign (solver, other, c);
    }
    while (p != end)
      *q++ = *p++;
    ws->end = q;
  }
  return conflict;
}

/*------------------------------------------------------------------------*/

static NOINLINE void
backtrack (Solver * solver, unsigned new_level)
{
  const unsigned target = solver->levels.begin[new_level].trail;
  while (SIZE (solver->trail) > target) {
    const lit_t lit = POP (solver->trail);
    Variable * v = solver->variables + VAR (lit);
    v->phase = lit & 1 ? -1 : 1;
    v->reason = 0;
    solver->values[lit] = solver->values[NOT (lit)] = 0;
    push_heap (solver, VAR (lit));
  }
  solver->levels.end = solver->levels.begin + new_level;
  solver->propagated = target;
}

static void
analyze_literal (Solver * solver, lit_t lit, unsigned * open)
{
  Variable * v = solver->variables + VAR (lit);
  if (v->seen || !v->level)
    return;
  v->seen = true;
  PUSH (unsigned, solver->analyzed, VAR (lit));
  bump_variable (solver, VAR (lit));
  if (v->level == SIZE (solver->levels)) {
    ++*open;
    return;
  }
  Level * level = solver->levels.begin + v->level - 1;
  if (!level->seen.count++ || level->seen.lowest > v->trail)
    level->seen.lowest = v->trail;
  PUSH (unsigned, solver->clause, lit);
}

static bool
is_redundant (Solver * solver, lit_t lit, unsigned depth)
{
  Variable * v = solver->variables + VAR (lit);
  const Clause * reason = v->reason;
  if (!reason || v->poisoned || depth > 12)
    return false;
  if (v->level && solver->levels.begin[v->level - 1].seen.lowest > v->trail)
    return false;
  for (unsigned i = 0; i < reason->size; i++) {
    const lit_t other = reason->literals[i];
    const Variable * u = solver->variables + VAR (other);
    if (other == NOT (lit) || u->seen || !u->level)
      continue;
    if (!solver->levels.begin[u->level - 1].seen.count || !is_redundant (solver, other, depth + 1)) {
      v->poisoned = true;
      PUSH (unsigned, solver->analyzed, VAR (lit));
      return false;
    }
  }
  return true;
}

static NOINLINE void
analyze (Solver * solver, Clause * conflict)
{
  const unsigned level = (unsigned) SIZE (solver->levels);
  const lit_t * t = solver->trail.end;
  unsigned open = 0, jump = 0, glue = 1;
  lit_t uip = INVALID;
  Clause * reason = conflict;
  CLEAR (solver->clause);
  CLEAR (solver->analyzed);
  PUSH (unsigned, solver->clause, INVALID);
  do {
    if (reason->redundant)
      reason->used = reason->glue <= options.tier1 ? 3 : 2;
    for (unsigned i = 0; i < reason->size; i++)
      if (reason->literals[i] != uip)
	analyze_literal (solver, reason->literals[i], &open);
    do
      uip = *--t;
    while (!solver->variables[VAR (uip)].seen || solver->variables[VAR (uip)].level != level);
    reason = solver->variables[VAR (uip)].reason;
  } while (--open);
  solver->clause.begin[0] = NOT (uip);
  CLEAR (solver->minimized);
  for (lit_t * p = solver->clause.begin; p != solver->clause.end; p++)
    if (p == solver->clause.begin || !is_redundant (solver, NOT (*p), 0))
      PUSH (unsigned, solver->minimized, *p);
    else
      statistics.minimized++;
  unsigned size = (unsigned) SIZE (solver->minimized), deepest = 1;
  lit_t * literals = solver->minimized.begin;
  for (unsigned i = 1; i < size; i++) {
    const unsigned at = solver->variables[VAR (literals[i])].level;
    if (solver->levels.begin[at - 1].seen.count)
      glue += solver->levels.begin[at - 1].seen.count != 0, solver->levels.begin[at - 1].seen.count = 0;
    if (at > jump)
      jump = at, deepest = i;
  }
  if (size > 1) {
    const lit_t tmp = literals[1];
    literals[1] = literals[deepest];
    literals[deepest] = tmp;
  }
  for (Level * l = solver->levels.begin; l != solver->levels.end; l++)
    l->seen.count = 0;
  for (unsigned * p = solver->analyzed.begin; p != solver->analyzed.end; p++)
    solver->variables[*p].seen = solver->variables[*p].poisoned = false;
  solver->increment /= options.decay;
  struct Averages * a = &solver->averages;
  a->fast += 0.03 * (glue - a->fast);
  a->slow += 1e-3 * (glue - a->slow);
  a->trail += 0.01 * ((double) SIZE (solver->trail) - a->trail);
  backtrack (solver, jump);
  Clause * learned = 0;
  if (size > 1) {
    learned = new_clause (solver, literals, size, true, glue);
    watch_clause (solver, learned);
  }
  assign (solver, literals[0], learned);
}

static void
decide (Solver * solver)
{
  unsigned idx;
  do
    idx = pop_heap (solver);
  while (solver->values[2 * idx]);
  Level level = { (unsigned) SIZE (solver->trail), 2 * idx + (solver->variables[idx].phase < 0), { 0, 0 } };
  PUSH (Level, solver->levels, level);
  statistics.decisions++;
  assign (solver, level.decision, 0);
}

/*------------------------------------------------------------------------*/

static int
worse (const void * p, const void * q)
{
  const Clause * c = *(Clause * const *) p, * d = *(Clause * const *) q;
  if (c->glue != d->glue)
    return c->glue < d->glue ? 1 : -1;
  return c->size == d->size ? 0 : c->size < d->size ? 1 : -1;
}

static NOINLINE void
flush_watches (Solver * solver)
{
  for (lit_t lit = 0; lit < 2 * solver->vars; lit++) {
    Watches * ws = solver->watches + lit;
    Watch * q = ws->begin;
    for (const Watch * p = q; p != ws->end; p++)
      if (!p->clause->garbage)
	*q++ = *p;
    ws->end = q;
  }
}

static NOINLINE void
reduce (Solver * solver)
{
  Clauses candidates = { 0, 0, 0 };
  Clause ** q = solver->redundant.begin;
  statistics.reductions++;
  for (lit_t * p = solver->trail.begin; p != solver->trail.end; p++)
    if (solver->variables[VAR (*p)].reason)
      solver->variables[VAR (*p)].reason->reason = 1;
  for (Clause ** p = q; p != solver->redundant.end; p++)
    if ((*p)->used)
      (*p)->used--;
    else if (!(*p)->reason && (*p)->glue > options.tier1)
      PUSH (Clause *, candidates, *p);
  if (SIZE (candidates) > 1)
    qsort (candidates.begin, SIZE (candidates), sizeof (Clause *), worse);
  const size_t target = SIZE (candidates) * options.reduce_fraction / 100;
  for (size_t i = 0; i < target; i++)
    candidates.begin[i]->garbage = 1;
  RELEASE (candidates);
  flush_watches (solver);
  for (lit_t * p = solver->trail.begin; p != solver->trail.end; p++)
    if (solver->variables[VAR (*p)].reason)
      solver->variables[VAR (*p)].reason->reason = 0;
  for (Clause ** p = q; p != solver->redundant.end; p++)
    if ((*p)->garbage)
      HEAP_FREE (*p);
    else
      *q++ = *p;
  solver->redundant.end = q;
}

static NOINLINE void
subsume (Solver * solver)
{
  Occurrences * occurrences = solver->occurrences;
  for (lit_t lit = 0; lit < 2 * solver->vars; lit++)
    occurrences[lit].count = 0;
  for (Clause ** p = solver->irredundant.begin; p != solver->irredundant.end; p++) {
    Clause * c = *p;
    for (unsigned i = 0; !c->garbage && i < c->size; i++) {
      const Occurrences * o = occurrences + c->literals[i];
      for (unsigned k = 0; k < o->count; k++) {
	const Clause * d = o->clauses[k];
	unsigned found = 0;
	if (d->size > c->size || d->signature & ~c->signature)
	  continue;
	for (unsigned a = 0; a < d->size; a++)
	  for (unsigned b = 0; b < c->size; b++)
	    if (d->literals[a] == c->literals[b]) {
	      found++;
	      break;
	    }
	if (found == d->size) {
	  c->garbage = 1;
	  statistics.subsumed++;
	  break;
	}
      }
    }
    if (c->garbage)
      continue;
    lit_t least = c->literals[0];
    for (unsigned i = 1; i < c->size; i++)
      if (occurrences[c->literals[i]].count < occurrences[least].count)
	least = c->literals[i];
    if (occurrences[least].count < 16)
      occurrences[least].clauses[occurrences[least].count++] = c;
  }
}

/*------------------------------------------------------------------------*/

static void
break_clause (Walker * walker, unsigned idx)
{
  walker->counters[idx].position = walker->nbroken;
  walker->broken[walker->nbroken++] = idx;
}

static void
make_clause (Walker * walker, unsigned idx)
{
  const unsigned position = walker->counters[idx].position, last = walker->broken[--walker->nbroken];
  walker->broken[position] = last;
  walker->counters[last].position = position;
}

static NOINLINE void
flip (Walker * walker, lit_t lit)
{
  Solver * solver = walker->solver;
  Clause ** clauses = solver->irredundant.begin;
  walker->values[lit] = 1;
  walker->values[NOT (lit)] = -1;
  solver->variables[VAR (lit)].local.flipped++;
  walker->flips++;
  for (const Watch * w = solver->watches[lit].begin; w != solver->watches[lit].end; w++) {
    const unsigned idx = w->blocking;
    if (!walker->counters[idx].satisfied++)
      make_clause (walker, idx);
    walker->counters[idx].critical ^= lit;
  }
  for (const Watch * w = solver->watches[NOT (lit)].begin; w != solver->watches[NOT (lit)].end; w++) {
    const unsigned idx = w->blocking;
    walker->counters[idx].critical ^= NOT (lit);
    if (!--walker->counters[idx].satisfied)
      break_clause (walker, idx);
    else if (walker->counters[idx].satisfied == 1)
      solver->variables[VAR (clauses[idx]->literals[0])].local.picked++;
  }
}

static unsigned
breaks (const Walker * walker, lit_t lit)
{
  const Watches * ws = walker->solver->watches + NOT (lit);
  unsigned result = 0;
  for (const Watch * w = ws->begin; w != ws->end; w++)
    if (walker->counters[w->blocking].satisfied == 1)
      result++;
  return result;
}

/* During the walk a list of watches holds all clauses with the literal, numbers in place of blocking ones. */

static NOINLINE void
walk (Solver * solver)
{
  const unsigned size = (unsigned) SIZE (solver->irredundant);
  Walker * walker = HEAP_CALLOC (Walker, 1);
  walker->solver = solver;
  walker->counters = HEAP_CALLOC (struct Counter, size);
  walker->broken = HEAP_CALLOC (unsigned, size);
  walker->values = HEAP_CALLOC (signed char, 2 * solver->vars);
  walker->scores = HEAP_CALLOC (float, 16);
  for (unsigned i = 0; i < 32; i++)
    walker->table[i] = i ? walker->table[i - 1] * 0.4f : 1;
  for (unsigned idx = 0; idx < solver->vars; idx++) {
    const val_t value = tr_rand () >> 40 & 1 ? 1 : -1;
    walker->values[2 * idx] = value;
    walker->values[2 * idx + 1] = -value;
  }
  for (unsigned i = 0; i < size; i++) {
    Clause * c = solver->irredundant.begin[i];
    struct Counter * counter = walker->counters + i;
    for (unsigned k = 0; k < c->size; k++) {
      watch_literal (solver, c->literals[k], i, c);
      if (walker->values[c->literals[k]] > 0)
	counter->satisfied++, counter->critical ^= c->literals[k];
    }
    if (!counter->satisfied)
      break_clause (walker, i);
  }
  walker->minimum = walker->nbroken;
  while (walker->nbroken && walker->flips < options.walk_flips) {
    const uint64_t r = tr_rand ();
    const Clause * c = solver->irredundant.begin[walker->broken[(r >> 32) % walker->nbroken]];
    float sum = 0, threshold;
    unsigned k;
    for (k = 0; k < c->size; k++)
      sum += walker->scores[k] = walker->table[breaks (walker, c->literals[k]) & 31];
    threshold = sum * (float) (r & 0xffff) / 65536;
    for (k = 0; k + 1 < c->size && (threshold -= walker->scores[k]) > 0; k++)
      ;
    flip (walker, c->literals[k]);
    if (walker->nbroken < walker->minimum) {
      walker->minimum = walker->nbroken;
      for (unsigned idx = 0; idx < solver->vars; idx++)
	solver->variables[idx].best = walker->values[2 * idx];
    }
  }
  statistics.flips += walker->flips;
  for (lit_t lit = 0; lit < 2 * solver->vars; lit++)
    CLEAR (solver->watches[lit]);
  for (unsigned idx = 0; idx < solver->vars; idx++)
    if (solver->variables[idx].best)
      solver->variables[idx].phase = solver->variables[idx].best;
  HEAP_FREE (walker->counters);
  HEAP_FREE (walker->broken);
  HEAP_FREE (walker->values);
  HEAP_FREE (walker->scores);
  HEAP_FREE (walker);
}

/*------------------------------------------------------------------------*/

static Solver *
new_solver (unsigned vars)
{
  Solver * solver = HEAP_CALLOC (Solver, 1);
  solver->vars = vars;
  solver->values = HEAP_CALLOC (signed char, 2 * vars);
  solver->variables = HEAP_CALLOC (Variable, vars);
  solver->watches = HEAP_CALLOC (Watches, 2 * vars);
  solver->occurrences = HEAP_CALLOC (Occurrences, 2 * vars);
  for (lit_t lit = 0; lit < 2 * vars; lit++)
    solver->occurrences[lit].clauses = HEAP_CALLOC (Clause *, 16);
  solver->increment = 1;
  for (unsigned idx = 0; idx < vars; idx++) {
    solver->variables[idx].heap_position = -1;
    solver->variables[idx].activity = (double) (idx % 7);
    push_heap (solver, idx);
  }
  return solver;
}

static void
delete_solver (Solver * solver)
{
  for (Clause ** p = solver->irredundant.begin; p != solver->irredundant.end; p++)
    HEAP_FREE (*p);
  for (Clause ** p = solver->redundant.begin; p != solver->redundant.end; p++)
    HEAP_FREE (*p);
  for (lit_t lit = 0; lit < 2 * solver->vars; lit++) {
    RELEASE (solver->watches[lit]);
    HEAP_FREE (solver->occurrences[lit].clauses);
  }
  RELEASE (solver->irredundant);
  RELEASE (solver->redundant);
  RELEASE (solver->trail);
  RELEASE (solver->clause);
  RELEASE (solver->minimized);
  RELEASE (solver->levels);
  RELEASE (solver->heap);
  RELEASE (solver->analyzed);
  HEAP_FREE (solver->occurrences);
  HEAP_FREE (solver->watches);
  HEAP_FREE (solver->variables);
  HEAP_FREE (solver->values);
  HEAP_FREE (solver);
}

static NOINLINE Solver *
parse (const char * p)
{
  Solver * solver = 0;
  lit_t lit = 0;
  while (*p) {
    if (*p == 'c' || *p == 'p') {
      if (*p == 'p')
	solver = new_solver ((unsigned) atoi (p + 6));
      while (*p++ != '\n')
	;
    } else if (*p == ' ' || *p == '\n')
      p++;
    else {
      const bool sign = *p == '-';
      unsigned n = 0;
      for (p += sign; *p >= '0' && *p <= '9'; p++)
	n = 10 * n + (unsigned) (*p - '0');
      if (n) {
	lit = 2 * (n - 1) + sign;
	PUSH (unsigned, solver->clause, lit);
      } else {
	new_clause (solver, solver->clause.begin, (unsigned) SIZE (solver->clause), false, 0);
	CLEAR (solver->clause);
      }
    }
  }
  return solver;
}

static NOINLINE bool
check_model (const Solver * solver)
{
  for (Clause ** p = solver->irredundant.begin; p != solver->irredundant.end; p++) {
    const Clause * c = *p;
    unsigned i = 0;
    while (i < c->size && solver->values[c->literals[i]] <= 0)
      i++;
    if (i == c->size)
      return false;
  }
  return true;
}

static int
solve (Solver * solver, unsigned conflicts)
{
  for (unsigned i = 0; i < 3; i++)
    solver->limits[i] = i == 0 ? 10 : options.reduce_interval;
  for (Clause ** p = solver->irredundant.begin; p != solver->irredundant.end; p++)
    if (!(*p)->garbage)
      watch_clause (solver, *p);
  for (unsigned n = 0;;) {
    Clause * conflict = propagate (solver);
    if (conflict) {
      statistics.conflicts++;
      if (EMPTY (solver->levels))
	return 20;
      if (++n > conflicts)
	return 0;
      analyze (solver, conflict);
      if (n >= solver->limit.reduce) {
	reduce (solver);
	solver->limit.reduce = n + options.reduce_interval;
      }
      if (n >= solver->limit.restart && solver->averages.fast > options.restart_margin * solver->averages.slow) {
	if (!EMPTY (solver->levels))
	  backtrack (solver, 0);
	solver->limit.restart = n + 10;
	statistics.restarts++;
      }
    } else if (SIZE (solver->trail) == solver->vars)
      return 10;
    else
      decide (solver);
  }
}

static char *
write_formula (unsigned vars, unsigned clauses)
{
  char * text = HEAP_CALLOC (char, 32 * clauses + 200), * p = text;
  p += sprintf (p, "c random\np cnf %u %u\n", vars, clauses);
  for (unsigned i = 0; i < clauses; i++) {
    const unsigned size = i % 24 == 0 ? 2 : i % 5 == 0 ? 4 : 3;
    for (unsigned k = 0; k < size; k++) {
      const uint64_t r = tr_rand ();
      p += sprintf (p, "%s%u ", r & 1 ? "-" : "", (unsigned) (r >> 20) % (vars / size) + k * (vars / size) + 1);
    }
    p += sprintf (p, "0\n");
  }
  return text;
}

int
main (int argc, char ** argv)
{
  static char * formulas[12];
  tr_init (argc, argv);
  TR_GLOBAL (statistics, "struct Statistics");
  TR_GLOBAL (options, "struct Options");
  TR_GLOBAL (formulas, "char * []");
  TR_CHECK (Variable, local);
  TR_CHECK (Clause, size);
  TR_CHECK (Solver, averages);
  for (unsigned i = 0; i < 12; i++)
    formulas[i] = write_formula (96 + 12 * (i % 3), (96 + 12 * (i % 3)) * (42 + i % 4) / 10);
  for (unsigned round = 0; tr_more (); round++) {
    Solver * solver = parse (formulas[round % 12]);
    subsume (solver);
    walk (solver);
    switch (solve (solver, 400)) {
    case 10:
      statistics.satisfiable++;
      if (!check_model (solver))
	abort ();
      break;
    case 20:
      statistics.unsatisfiable++;
      break;
    default:
      statistics.unknown++;
    }
    delete_solver (solver);
  }
  tr_sink = statistics.conflicts;
  if (getenv ("VERBOSE"))
    printf ("%lu conflicts, %lu flips, %lu subsumed, %lu/%lu/%lu\n", (long) statistics.conflicts, (long) statistics.flips,
	    (long) statistics.subsumed, (long) statistics.satisfiable, (long) statistics.unsatisfiable, (long) statistics.unknown);
  return 0;
}
