/*  Part of a Prolog system: atoms, functors, tagged words on a global stack, clauses
    compiled to codes, first argument hashing, frames, choice points and a trail,
    operators, arithmetic, a recorded database.
*/

#include "../heap.h"

typedef uintptr_t	word;		/* Anything: see the tags */
typedef word *		Word;
typedef word		atom_t;
typedef uintptr_t	code;
typedef code *		Code;

/*- - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -
A word is 0 (an unbound variable), or its low three bits say what it is.
Compound terms are addressed by their offset on the global stack: there is
the functor, and then its arguments.
- - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - */

#define TAG_MASK	0x7
#define TAG_REFERENCE	0x1
#define TAG_INTEGER	0x2
#define TAG_ATOM	0x3
#define TAG_COMPOUND	0x4
#define TAG_FUNCTOR	0x5
#define TAG_VARNUM	0x6		/* in codes only */
#define LMASK_BITS	3

#define tag(w)		((w) & TAG_MASK)
#define isVar(w)	((w) == 0)
#define isRef(w)	(tag(w) == TAG_REFERENCE)
#define isInteger(w)	(tag(w) == TAG_INTEGER)
#define isAtom(w)	(tag(w) == TAG_ATOM)
#define isTerm(w)	(tag(w) == TAG_COMPOUND)
#define isAtomic(w)	(isInteger(w) || isAtom(w))
#define consInt(i)	(((word)(intptr_t)(i) << LMASK_BITS) | TAG_INTEGER)
#define valInt(w)	((intptr_t)(w) >> LMASK_BITS)
#define consPtr(o, t)	(((word)(o) << LMASK_BITS) | (t))
#define valOffset(w)	((w) >> LMASK_BITS)

#define GLOBAL_WORDS	(1<<17)
#define TRAIL_ENTRIES	(1<<14)
#define FRAMES		(1<<14)
#define CHOICES		(1<<12)
#define ATOM_BUCKETS	1024
#define FUNCTOR_BUCKETS	256
#define MAX_VARS	64

typedef struct atom *		Atom;
typedef struct functor_def *	FunctorDef;
typedef struct definition *	Definition;
typedef struct clause *		Clause;
typedef struct clause_ref *	ClauseRef;
typedef struct local_frame *	LocalFrame;

struct atom
{ Atom		next;			/* in the hash chain */
  unsigned int	hash_value;
  unsigned int	index;
  unsigned int	references;
  unsigned short length;
  char *	name;
};

struct functor_def
{ FunctorDef	next;
  word		functor;		/* its own tagged word */
  atom_t	name;
  unsigned int	arity;
  unsigned int	flags;
  Definition	definition;
};

struct clause
{ Definition	predicate;
  unsigned short variables;
  unsigned short prolog_vars;
  unsigned int	code_size;
  unsigned	erased : 1;
  unsigned	unit_clause : 1;
  unsigned	references : 30;
  Code		codes;
};

struct clause_ref
{ ClauseRef	next;
  word		key;			/* of the first argument, or 0 */
  Clause	value;
};

typedef struct clause_bucket
{ ClauseRef	head, tail;
  word		key;
  unsigned int	dirty, count;
} *ClauseBucket;

typedef struct clause_index
{ unsigned int	buckets, size;
  unsigned char	arg;
  unsigned	good : 1;
  unsigned	is_list : 1;
  ClauseBucket	entries;
} *ClauseIndex;

typedef int (*Func)(word *args);

struct definition
{ FunctorDef	functor;
  ClauseRef	first_clause, last_clause;
  unsigned int	number_of_clauses, number_of_rules;
  ClauseIndex	index;
  Func		function;		/* foreign: written in C */
  struct { unsigned long calls, redos, exits; } profile;
};

struct local_frame
{ Code		program_counter;	/* the goals that are left */
  LocalFrame	parent;
  Clause	clause;
  Word		vars;			/* the clause's variables, on the global stack */
  unsigned int	level;
  unsigned int	cut_choice;
};

typedef enum { CHP_CLAUSE, CHP_TOP, CHP_FOREIGN } choice_type;

typedef struct mark { unsigned int trailtop; Word globaltop; LocalFrame frametop; } mark;

typedef struct choice
{ choice_type	type;
  mark		mark;			/* what to undo to */
  LocalFrame	frame;			/* whose goal it is */
  Code		next_goal;
  Word		args;
  ClauseRef	cref;
  Definition	pred;
  word		key;
} *Choice;

typedef struct trail_entry { Word address; } trail_entry;

typedef struct op_def { char name[8]; unsigned short priority, type; } op_def;
enum { OP_XFX, OP_XFY, OP_YFX, OP_FY };

typedef struct record *RecordRef;
struct record { RecordRef next; word key; unsigned int size, nvars; code *buffer; };

typedef struct record_list { RecordRef first, last; unsigned int count; } record_list;

static struct PL_local_data
{ struct { Word base, top, max; } global;
  trail_entry *	trail;
  unsigned int	trail_top;
  LocalFrame	frames, frame_top;
  struct choice *choices;
  unsigned int	choice_top;
  struct { unsigned long inferences, unifications, backtracks, atoms, indexed, lips; } statistics;
  record_list	records[64];
} LD;

static struct PL_global_data
{ Atom		atom_table[ATOM_BUCKETS];
  FunctorDef	functor_table[FUNCTOR_BUCKETS];
  Atom *	atom_array;
  FunctorDef *	functor_array;
  unsigned int	atoms, functors;
} GD;

static op_def operators[] =		/* sorted by name, for bsearch() */
{ { "*", 400, OP_YFX }, { "+", 500, OP_YFX }, { ",", 1000, OP_XFY }, { "-", 500, OP_YFX }, { "//", 400, OP_YFX },
  { ":-", 1200, OP_XFX }, { "<", 700, OP_XFX }, { "=", 700, OP_XFX }, { "=:=", 700, OP_XFX }, { "=\\=", 700, OP_XFX },
  { ">", 700, OP_XFX }, { ">=", 700, OP_XFX }, { "^", 200, OP_XFY }, { "is", 700, OP_XFX }, { "mod", 400, OP_YFX },
};

static word FUNCTOR_dot2, FUNCTOR_comma2, FUNCTOR_prove2, FUNCTOR_plus2, FUNCTOR_minus2, FUNCTOR_star2, FUNCTOR_divide2, FUNCTOR_mod2;
static atom_t ATOM_nil, ATOM_cut, ATOM_true;

static void sysError(const char *what) { fprintf(stderr, "prolog: %s\n", what); exit(1); }

		 /*******************************
		 *	 ATOMS, FUNCTORS	*
		 *******************************/

static unsigned int MurmurHash(const char *s, size_t len)
{ unsigned int h = 0x1a3be34a;

  for(size_t i = 0; i < len; i++)
  { h ^= (unsigned char)s[i];
    h *= 0x5bd1e995;
    h ^= h >> 15;
  }
  return h;
}

static NOINLINE atom_t lookupAtom(const char *s, size_t length)
{ unsigned int v = MurmurHash(s, length);
  Atom a;

  for(a = GD.atom_table[v % ATOM_BUCKETS]; a; a = a->next)
  { if ( a->hash_value == v && a->length == length && memcmp(s, a->name, length) == 0 )
    { a->references++;
      return consPtr(a->index, TAG_ATOM);
    }
  }
  a = HEAP_CALLOC(struct atom, 1);
  a->name = HEAP_CALLOC(char, (length + 8) & ~7ul);
  memcpy(a->name, s, length);
  a->length = (unsigned short)length;
  a->hash_value = v;
  a->index = GD.atoms;
  a->next = GD.atom_table[v % ATOM_BUCKETS];
  GD.atom_table[v % ATOM_BUCKETS] = a;
  GD.atom_array[GD.atoms++] = a;
  LD.statistics.atoms++;
  return consPtr(a->index, TAG_ATOM);
}

static atom_t atomOf(const char *s) { return lookupAtom(s, strlen(s)); }

static NOINLINE word lookupFunctorDef(atom_t atom, unsigned int arity)
{ unsigned int v = (unsigned int)(atom * 31 + arity) % FUNCTOR_BUCKETS;
  FunctorDef f;

  for(f = GD.functor_table[v]; f; f = f->next)
  { if ( f->name == atom && f->arity == arity )
      return f->functor;
  }
  f = HEAP_CALLOC(struct functor_def, 1);
  f->name = atom;
  f->arity = arity;
  f->functor = consPtr(GD.functors, TAG_FUNCTOR);
  f->next = GD.functor_table[v];
  GD.functor_table[v] = f;
  GD.functor_array[GD.functors++] = f;
  return f->functor;
}

static inline FunctorDef valueFunctor(word w) { return GD.functor_array[valOffset(w)]; }

static Definition procedureOf(FunctorDef f)
{ if ( !f->definition )
  { f->definition = HEAP_CALLOC(struct definition, 1);
    f->definition->functor = f;
  }
  return f->definition;
}

		 /*******************************
		 *	      TERMS		*
		 *******************************/

static inline Word allocGlobal(unsigned int n)
{ Word p = LD.global.top;

  if ( p + n > LD.global.max )
    sysError("global stack");
  LD.global.top += n;
  return p;
}

static inline Word deRef(Word p)
{ while( isRef(*p) )
    p = LD.global.base + valOffset(*p);
  return p;
}

static inline word makeRef(Word p) { return consPtr(p - LD.global.base, TAG_REFERENCE); }
static inline Word valueTerm(word w) { return LD.global.base + valOffset(w); }
static inline word linkVal(Word p) { p = deRef(p); return isVar(*p) ? makeRef(p) : *p; }

static inline void assignTrail(Word p, word w)
{ *p = w;
  if ( LD.trail_top >= TRAIL_ENTRIES )
    sysError("trail");
  LD.trail[LD.trail_top++].address = p;
}

static NOINLINE int unify(Word t1, Word t2)
{ LD.statistics.unifications++;
  for(;;)
  { t1 = deRef(t1);
    t2 = deRef(t2);
    if ( t1 == t2 )
      return 1;
    if ( isVar(*t1) )
    { if ( isVar(*t2) && t1 < t2 )
	assignTrail(t2, makeRef(t1));
      else
	assignTrail(t1, isVar(*t2) ? makeRef(t2) : *t2);
      return 1;
    }
    if ( isVar(*t2) )
    { assignTrail(t2, *t1);
      return 1;
    }
    if ( *t1 == *t2 )
      return 1;
    if ( !isTerm(*t1) || !isTerm(*t2) )
      return 0;
    Word a1 = valueTerm(*t1), a2 = valueTerm(*t2);
    if ( *a1 != *a2 )
      return 0;
    unsigned int arity = valueFunctor(*a1)->arity;
    for(unsigned int i = 1; i < arity; i++)
    { if ( !unify(a1+i, a2+i) )
	return 0;
    }
    t1 = a1+arity;			/* the last argument without a call */
    t2 = a2+arity;
  }
}

		 /*******************************
		 *	    READING		*
		 *******************************/

typedef struct read_data
{ const char *	here;
  struct { atom_t name; Word where; unsigned int times; } vars[MAX_VARS];
  unsigned int	nvars;
  char		token[64];
} *ReadData;

static int compareOp(const void *key, const void *def) { return strcmp(key, ((const op_def *)def)->name); }

static const op_def *isOp(const char *name)
{ return bsearch(name, operators, sizeof(operators)/sizeof(*operators), sizeof(op_def), compareOp);
}

static int symbolChar(int c) { return c && strchr("+-*/\\^<>=:", c) != NULL; }
static int alphaChar(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

static int peekToken(ReadData rd)	/* into rd->token; its length */
{ int n = 0;

  while( *rd->here == ' ' || *rd->here == '\n' )
    rd->here++;
  if ( alphaChar(*rd->here) )
  { while( alphaChar(rd->here[n]) )
      n++;
  } else if ( symbolChar(*rd->here) )
  { while( symbolChar(rd->here[n]) )
      n++;
  } else if ( *rd->here )
    n = 1;
  memcpy(rd->token, rd->here, (size_t)n);
  rd->token[n] = 0;
  return n;
}

static word complexTerm(ReadData rd, int priority);

static word compound(word functor, const word *args, unsigned int n)
{ Word p = allocGlobal(n+1);

  p[0] = functor;
  for(unsigned int i = 0; i < n; i++)
    p[i+1] = args[i] ? args[i] : 0;
  return consPtr(p - LD.global.base, TAG_COMPOUND);
}

static word readVariable(ReadData rd, atom_t name)
{ unsigned int i;

  for(i = 0; i < rd->nvars; i++)
  { if ( rd->vars[i].name == name && rd->token[0] != '_' )
    { rd->vars[i].times++;
      return makeRef(rd->vars[i].where);
    }
  }
  rd->vars[rd->nvars].name = name;
  rd->vars[rd->nvars].times = 1;
  Word p = rd->vars[rd->nvars++].where = allocGlobal(1);
  *p = 0;
  return makeRef(p);
}

static word simpleTerm(ReadData rd)
{ int n = peekToken(rd), c = rd->token[0];
  word args[8];

  rd->here += n;
  if ( c >= '0' && c <= '9' )
    return consInt(atol(rd->token));
  if ( c == '-' && n == 1 )
    return consInt(-valInt(simpleTerm(rd)));
  if ( c == '(' )
  { word t = complexTerm(rd, 1200);
    rd->here += peekToken(rd);
    return t;
  }
  if ( c == '[' )
  { word items[32], tail = ATOM_nil;
    int count = 0;

    while( peekToken(rd) && rd->token[0] != ']' )
    { if ( rd->token[0] == '|' )
      { rd->here++;
	tail = complexTerm(rd, 999);
	continue;
      }
      if ( rd->token[0] == ',' )
	rd->here++;
      items[count++] = complexTerm(rd, 999);
    }
    rd->here++;
    while( count > 0 )
    { args[0] = items[--count];
      args[1] = tail;
      tail = compound(FUNCTOR_dot2, args, 2);
    }
    return tail;
  }
  atom_t name = lookupAtom(rd->token, (size_t)n);
  if ( (c >= 'A' && c <= 'Z') || c == '_' )
    return readVariable(rd, name);
  if ( *rd->here == '(' )
  { unsigned int arity = 0;

    do
    { rd->here++;
      args[arity++] = complexTerm(rd, 999);
      peekToken(rd);
    } while( rd->token[0] == ',' );
    rd->here++;
    return compound(lookupFunctorDef(name, arity), args, arity);
  }
  return name;
}

static NOINLINE word complexTerm(ReadData rd, int priority)
{ word args[2];

  args[0] = simpleTerm(rd);
  for(;;)
  { int n = peekToken(rd);
    const op_def *op = n ? isOp(rd->token) : NULL;

    if ( !op || op->priority > priority )
      return args[0];
    rd->here += n;
    word functor = lookupFunctorDef(atomOf(op->name), 2);
    args[1] = complexTerm(rd, op->type == OP_XFY ? op->priority : op->priority-1);
    args[0] = compound(functor, args, 2);
  }
}

		 /*******************************
		 *	   COMPILING		*
		 *******************************/

typedef struct compile_info { Word addr[MAX_VARS]; unsigned int nvars, size; code buffer[1024]; } *CompileInfo;

static struct compile_info compile_info;

static NOINLINE void compileTerm(Word p, CompileInfo ci)
{ p = deRef(p);
  if ( isVar(*p) )
  { unsigned int i;

    for(i = 0; i < ci->nvars && ci->addr[i] != p; i++)
      ;
    if ( i == ci->nvars )
      ci->addr[ci->nvars++] = p;
    ci->buffer[ci->size++] = consPtr(i, TAG_VARNUM);
  } else if ( isTerm(*p) )
  { Word f = valueTerm(*p);
    unsigned int arity = valueFunctor(*f)->arity;

    ci->buffer[ci->size++] = *f;
    for(unsigned int i = 1; i <= arity; i++)
      compileTerm(f+i, ci);
  } else
    ci->buffer[ci->size++] = *p;
}

static inline word argKey(word w)	/* what the first argument is indexed by */
{ return isTerm(w) ? *valueTerm(w) : isAtomic(w) ? w : 0;
}

static void addToBucket(ClauseIndex ci, word key, Clause clause)
{ unsigned int h = (unsigned int)((key * 0x9E3779B97F4A7C15ull) >> 40) & (ci->buckets-1);
  ClauseBucket b = &ci->entries[h];
  ClauseRef cref = HEAP_MALLOC(struct clause_ref);

  cref->key = key;
  cref->value = clause;
  cref->next = NULL;
  if ( b->tail )
    b->tail->next = cref;
  else
    b->head = cref;
  b->tail = cref;
  b->count++;
  ci->size++;
}

static NOINLINE void hashDefinition(Definition def)
{ unsigned int buckets = 8;

  while( buckets < def->number_of_clauses )
    buckets *= 2;
  ClauseIndex ci = HEAP_CALLOC(struct clause_index, 1);
  ci->buckets = buckets;
  ci->good = 1;
  ci->entries = HEAP_CALLOC(struct clause_bucket, buckets);
  for(ClauseRef c = def->first_clause; c; c = c->next)
  { if ( !c->value->erased && c->key )
      addToBucket(ci, c->key, c->value);
    else if ( !c->key )
      ci->good = 0;			/* a variable: all must be looked at */
  }
  def->index = ci;
}

static void dropIndex(Definition def)
{ ClauseIndex ci = def->index;

  if ( !ci )
    return;
  for(unsigned int i = 0; i < ci->buckets; i++)
  { for(ClauseRef c = ci->entries[i].head, next; c; c = next)
    { next = c->next;
      HEAP_FREE(c);
    }
  }
  HEAP_FREE(ci->entries);
  HEAP_FREE(ci);
  def->index = NULL;
}

/* A term of the form Head :- Body or Head is added. Codes: head, then each goal, then 0. */
static NOINLINE Clause assertTerm(Word term)
{ CompileInfo ci = &compile_info;
  Word head = deRef(term), body = NULL;

  ci->nvars = ci->size = 0;
  if ( isTerm(*head) && *valueTerm(*head) == FUNCTOR_prove2 )
  { Word f = valueTerm(*head);
    head = deRef(f+1);
    body = deRef(f+2);
  }
  Definition def = procedureOf(isTerm(*head) ? valueFunctor(*valueTerm(*head)) : valueFunctor(lookupFunctorDef(*head, 0)));
  compileTerm(head, ci);
  while( body )
  { Word goal = body, next = NULL;

    if ( isTerm(*body) && *valueTerm(*body) == FUNCTOR_comma2 )
    { Word f = valueTerm(*body);
      goal = deRef(f+1);
      next = deRef(f+2);
    }
    compileTerm(goal, ci);
    body = next;
  }
  ci->buffer[ci->size++] = 0;
  Clause clause = HEAP_CALLOC(struct clause, 1);
  clause->predicate = def;
  clause->variables = clause->prolog_vars = (unsigned short)ci->nvars;
  clause->code_size = ci->size;
  clause->unit_clause = ci->buffer[ci->size-1] == 0 && ci->size < 8;
  clause->codes = (Code)heap_take("unsigned long", sizeof(code), ((ci->size+3) & ~3ul) * sizeof(code));
  memcpy(clause->codes, ci->buffer, ci->size * sizeof(code));
  ClauseRef cref = HEAP_CALLOC(struct clause_ref, 1);
  cref->key = isTerm(*head) ? argKey(*deRef(valueTerm(*head)+1)) : 0;
  cref->value = clause;
  if ( def->last_clause )
    def->last_clause->next = cref;
  else
    def->first_clause = cref;
  def->last_clause = cref;
  def->number_of_clauses++;
  if ( def->index && cref->key && def->number_of_clauses < def->index->buckets*2 )
    addToBucket(def->index, cref->key, clause);
  else
    dropIndex(def);
  return clause;
}

		 /*******************************
		 *	   EXECUTION		*
		 *******************************/

/* Makes the term that codes tell of. */
static NOINLINE void buildTerm(Code *pc, Word to, Word vars)
{ code c = *(*pc)++;

  if ( tag(c) == TAG_VARNUM )
  { Word v = vars + valOffset(c);
    *to = linkVal(v);
  } else if ( tag(c) == TAG_FUNCTOR )
  { unsigned int arity = valueFunctor(c)->arity;
    Word p = allocGlobal(arity+1);

    *to = consPtr(p - LD.global.base, TAG_COMPOUND);
    *p = c;
    for(unsigned int i = 1; i <= arity; i++)
      buildTerm(pc, p+i, vars);
  } else
    *to = c;
}

static Code skipTerm(Code pc)
{ code c = *pc++;

  if ( tag(c) == TAG_FUNCTOR )
  { for(unsigned int n = valueFunctor(c)->arity; n > 0; n--)
      pc = skipTerm(pc);
  }
  return pc;
}

static NOINLINE int unifyHead(Code *pc, Word arg, Word vars)
{ code c = *(*pc)++;

  if ( tag(c) == TAG_VARNUM )
  { Word v = vars + valOffset(c);

    if ( isVar(*v) )			/* first time: no trail, it is younger than any choice */
    { *v = linkVal(arg);
      if ( *v == makeRef(v) )
	*v = 0;
      return 1;
    }
    return unify(v, arg);
  }
  arg = deRef(arg);
  if ( tag(c) == TAG_FUNCTOR )
  { unsigned int arity = valueFunctor(c)->arity;

    if ( isVar(*arg) )
    { word w;

      (*pc)--;
      buildTerm(pc, &w, vars);
      assignTrail(arg, w);
      return 1;
    }
    if ( !isTerm(*arg) )
      return 0;
    Word f = valueTerm(*arg);
    if ( *f != c )
      return 0;
    for(unsigned int i = 1; i <= arity; i++)
    { if ( !unifyHead(pc, f+i, vars) )
	return 0;
    }
    return 1;
  }
  if ( isVar(*arg) )
  { assignTrail(arg, c);
    return 1;
  }
  return *arg == c;
}

static NOINLINE void undo(const mark *m)
{ while( LD.trail_top > m->trailtop )
    *LD.trail[--LD.trail_top].address = 0;
  LD.global.top = m->globaltop;
  LD.frame_top = m->frametop;
  LD.statistics.backtracks++;
}

static NOINLINE intptr_t valueExpression(Word p)
{ p = deRef(p);
  if ( isInteger(*p) )
    return valInt(*p);
  if ( !isTerm(*p) )
    sysError("arithmetic");
  Word f = valueTerm(*p);
  intptr_t a = valueExpression(f+1), b = valueExpression(f+2);
  if ( *f == FUNCTOR_plus2 ) return a + b;
  if ( *f == FUNCTOR_minus2 ) return a - b;
  if ( *f == FUNCTOR_star2 ) return a * b;
  if ( *f == FUNCTOR_divide2 ) return b ? a / b : 0;
  return b ? a % b : 0;
}

static int pl_is(word *a)
{ word w = consInt(valueExpression(a+1));
  return unify(a, &w);
}
static int pl_less(word *a) { return valueExpression(a) < valueExpression(a+1); }
static int pl_greater(word *a) { return valueExpression(a) > valueExpression(a+1); }
static int pl_ge(word *a) { return valueExpression(a) >= valueExpression(a+1); }
static int pl_eq(word *a) { return valueExpression(a) == valueExpression(a+1); }
static int pl_ne(word *a) { return valueExpression(a) != valueExpression(a+1); }
static int pl_unify(word *a) { return unify(a, a+1); }
static int pl_fail(word *a) { (void)a; return 0; }
static int pl_assertz(word *a) { return assertTerm(a) != NULL; }

/* erase(Name/1 fact): the first clause of the predicate that fits. */
static int pl_retract(word *a)
{ Word h = deRef(a), f = valueTerm(*h);
  Definition def = procedureOf(valueFunctor(*f));
  word key = argKey(*deRef(f+1));

  for(ClauseRef *link = &def->first_clause, last = NULL; *link; last = *link, link = &(*link)->next)
  { ClauseRef c = *link;

    if ( c->value->references || (key && c->key != key) )
      continue;
    *link = c->next;
    if ( def->last_clause == c )
      def->last_clause = last;
    if ( def->index )
      for(unsigned int i = 0; i < def->index->buckets; i++)
      { ClauseBucket b = &def->index->entries[i];
	for(ClauseRef *l = &b->head, before = NULL; *l; before = *l, l = &(*l)->next)
	  if ( (*l)->value == c->value )
	  { ClauseRef gone = *l;
	    *l = gone->next;
	    if ( b->tail == gone )
	      b->tail = before;
	    HEAP_FREE(gone);
	    break;
	  }
      }
    HEAP_FREE(c->value->codes);
    HEAP_FREE(c->value);
    HEAP_FREE(c);
    def->number_of_clauses--;
    return 1;
  }
  return 0;
}

static int pl_recordz(word *a)
{ CompileInfo ci = &compile_info;
  record_list *rl = &LD.records[(*deRef(a) >> LMASK_BITS) & 63];
  RecordRef r = HEAP_CALLOC(struct record, 1);

  ci->nvars = ci->size = 0;
  compileTerm(a+1, ci);
  r->size = ci->size;
  r->nvars = ci->nvars;
  r->key = *deRef(a);
  r->buffer = (code *)heap_take("unsigned long", sizeof(code), ((ci->size+7) & ~7ul) * sizeof(code));
  memcpy(r->buffer, ci->buffer, ci->size * sizeof(code));
  if ( rl->last )
    rl->last->next = r;
  else
    rl->first = r;
  rl->last = r;
  rl->count++;
  return 1;
}

/* recorded_list(Key, List): all that was recorded, which is then forgotten. */
static int pl_recorded_list(word *a)
{ record_list *rl = &LD.records[(*deRef(a) >> LMASK_BITS) & 63];
  word list = 0, *tail = &list;

  for(RecordRef r = rl->first, next; r; r = next)
  { Word vars = allocGlobal(r->nvars), cell;
    Code pc = r->buffer;

    for(unsigned int i = 0; i < r->nvars; i++)
      vars[i] = 0;
    cell = allocGlobal(3);
    cell[0] = FUNCTOR_dot2;
    buildTerm(&pc, cell+1, vars);
    cell[2] = 0;
    *tail = consPtr(cell - LD.global.base, TAG_COMPOUND);
    tail = cell+2;
    next = r->next;
    HEAP_FREE(r->buffer);
    HEAP_FREE(r);
  }
  *tail = ATOM_nil;
  rl->first = rl->last = NULL;
  rl->count = 0;
  return unify(a+1, &list);
}

static inline ClauseRef nextClause(ClauseRef c, word key)
{ while( c && key && c->key && c->key != key )
    c = c->next;
  return c;
}

static ClauseRef firstClause(Definition def, word *key, Word args)
{ *key = def->functor->arity ? argKey(*deRef(args)) : 0;
  if ( *key && def->number_of_clauses > 8 )
  { if ( !def->index )
      hashDefinition(def);
    if ( def->index->good )
    { unsigned int h = (unsigned int)((*key * 0x9E3779B97F4A7C15ull) >> 40) & (def->index->buckets-1);
      LD.statistics.indexed++;
      return nextClause(def->index->entries[h].head, *key);
    }
  }
  return nextClause(def->first_clause, *key);
}

static LocalFrame pushFrame(LocalFrame parent, Code pc, Clause clause, Word vars)
{ LocalFrame fr = LD.frame_top++;

  if ( fr >= LD.frames + FRAMES )
    sysError("frames");
  fr->parent = parent;
  fr->program_counter = pc;
  fr->clause = clause;
  fr->vars = vars;
  fr->level = parent ? parent->level+1 : 0;
  fr->cut_choice = LD.choice_top;
  return fr;
}

/* Proves the goals from pc on, in frame fr. Solutions: at most limit. */
static NOINLINE unsigned long solve(LocalFrame fr, Code pc, unsigned long limit)
{ unsigned long solutions = 0;
  word args_of_goal, key;
  Word args;
  Definition def;
  ClauseRef cref;

  for(;;)
  { while( *pc == 0 )			/* exit */
    { if ( !fr->parent )
      { if ( ++solutions >= limit )
	  return solutions;
	goto backtrack;
      }
      if ( fr->clause )
	fr->clause->predicate->profile.exits++;
      pc = fr->program_counter;
      fr = fr->parent;
    }
    if ( *pc == ATOM_cut )
    { LD.choice_top = fr->cut_choice;
      pc++;
      continue;
    }
    if ( *pc == ATOM_true )
    { pc++;
      continue;
    }
    LD.statistics.inferences++;
    buildTerm(&pc, &args_of_goal, fr->vars);
    if ( isTerm(args_of_goal) )
    { args = valueTerm(args_of_goal);
      def = procedureOf(valueFunctor(*args++));
    } else
    { args = LD.global.top;
      def = procedureOf(valueFunctor(lookupFunctorDef(args_of_goal, 0)));
    }
    def->profile.calls++;
    if ( def->function )
    { if ( def->function(args) )
	continue;
      goto backtrack;
    }
    cref = firstClause(def, &key, args);

  try_clause:
    if ( !cref )
      goto backtrack;
    unsigned int choice_before = LD.choice_top;
    ClauseRef alternative = nextClause(cref->next, key);
    if ( alternative )
    { struct choice *ch = &LD.choices[LD.choice_top++];

      if ( LD.choice_top >= CHOICES )
	sysError("choices");
      ch->type = CHP_CLAUSE;
      ch->mark.trailtop = LD.trail_top;
      ch->mark.globaltop = LD.global.top;
      ch->mark.frametop = LD.frame_top;
      ch->frame = fr;
      ch->next_goal = pc;
      ch->args = args;
      ch->cref = alternative;
      ch->pred = def;
      ch->key = key;
    }
    Clause clause = cref->value;
    Word vars = allocGlobal(clause->variables);
    for(unsigned int i = 0; i < clause->variables; i++)
      vars[i] = 0;
    Code hc = clause->codes;
    unsigned int arity = def->functor->arity;
    if ( arity )
      hc++;
    int ok = 1;
    for(unsigned int i = 0; ok && i < arity; i++)
      ok = unifyHead(&hc, args+i, vars);
    if ( ok )
    { if ( !arity )
	hc++;
      if ( *hc == 0 )			/* a fact */
      { def->profile.exits++;
	continue;
      }
      fr = pushFrame(fr, pc, clause, vars);
      fr->cut_choice = choice_before;
      pc = hc;
      continue;
    }

  backtrack:
    if ( LD.choice_top == 0 )
      return solutions;
    Choice ch = &LD.choices[--LD.choice_top];
    undo(&ch->mark);
    if ( ch->type == CHP_TOP )
      return solutions;
    fr = ch->frame;
    pc = ch->next_goal;
    args = ch->args;
    def = ch->pred;
    key = ch->key;
    cref = ch->cref;
    def->profile.redos++;
    goto try_clause;
  }
}

static unsigned long query(const char *text, unsigned long limit)
{ struct read_data rd = { .here = text };

  LD.global.top = LD.global.base + 1;
  LD.trail_top = LD.choice_top = 0;
  LD.frame_top = LD.frames;
  word t = complexTerm(&rd, 1200), args[2] = { atomOf("query"), t };
  Word goal = allocGlobal(1);
  *goal = compound(FUNCTOR_prove2, args, 2);
  Clause clause = assertTerm(goal);
  Definition def = clause->predicate;
  Word vars = allocGlobal(clause->variables);
  for(unsigned int i = 0; i < clause->variables; i++)
    vars[i] = 0;
  LocalFrame top = pushFrame(NULL, NULL, clause, vars);
  unsigned long n = solve(top, skipTerm(clause->codes), limit);
  HEAP_FREE(clause->codes);
  HEAP_FREE(clause);
  HEAP_FREE(def->first_clause);
  def->first_clause = def->last_clause = NULL;
  def->number_of_clauses = 0;
  return n;
}

static void consult(const char *text)
{ struct read_data rd = { .here = text };

  while( peekToken(&rd) )
  { rd.nvars = 0;
    LD.global.top = LD.global.base + 1;
    Word t = allocGlobal(1);
    *t = complexTerm(&rd, 1200);
    assertTerm(t);
    while( *rd.here && *rd.here != '.' )
      rd.here++;
    rd.here += *rd.here == '.';
  }
}

static const char program[] =
  "app([], L, L). app([H|T], L, [H|R]) :- app(T, L, R)."
  "nrev([], []). nrev([H|T], R) :- nrev(T, RT), app(RT, [H], R)."
  "range(N, N, [N]) :- !. range(I, N, [I|T]) :- I < N, J is I+1, range(J, N, T)."
  "bench(0) :- !. bench(N) :- range(1, 30, L), nrev(L, R), sum(R, S), S > 0, M is N-1, bench(M)."
  "sum([], 0). sum([H|T], S) :- sum(T, R), S is H+R."
  "select(X, [X|T], T). select(X, [H|T], [H|R]) :- select(X, T, R)."
  "queens(N, Qs) :- range(1, N, Ns), place(Ns, [], Qs)."
  "place([], Qs, Qs). place(Un, Safe, Qs) :- select(Q, Un, Rest), safe(Q, 1, Safe), place(Rest, [Q|Safe], Qs)."
  "safe(Q, D, []). safe(Q, D, [H|T]) :- Q =\\= H+D, Q =\\= H-D, E is D+1, safe(Q, E, T)."
  "d(X, X, 1) :- !. d(A+B, X, DA+DB) :- !, d(A, X, DA), d(B, X, DB). d(A*B, X, A*DB+B*DA) :- !, d(A, X, DA), d(B, X, DB). d(C, X, 0)."
  "deriv(0, E) :- !. deriv(N, E) :- d(E, x, D), M is N-1, deriv(M, E+x*D)."
  "reach(X, X, N). reach(X, Z, N) :- N > 0, edge(X, Y, W), M is N-1, reach(Y, Z, M)."
  "cost(X, 0, 0). cost(X, N, C) :- N > 0, edge(X, Y, W), W < 60, M is N-1, cost(Y, M, D), C is W+D, C < 150."
  "grandparent(X, Z) :- parent(X, Y), parent(Y, Z). sibling(X, Y) :- parent(P, X), parent(P, Y), X =\\= Y."
  "ancestor(X, Y) :- parent(X, Y). ancestor(X, Y) :- parent(X, Z), ancestor(Z, Y)."
  "count(N, N) :- !. count(I, N) :- retract(counter(I)), J is I+1, assertz(counter(J)), count(J, N)."
  "collect(X, N, L) :- costs(X, N). collect(X, N, L) :- recordedlist(X, L). costs(X, N) :- cost(X, N, C), recordz(X, cost(X, C)), fail."
  "insert(X, nil, t(nil, X, nil)) :- !. insert(X, t(L, Y, R), t(M, Y, R)) :- X < Y, !, insert(X, L, M). insert(X, t(L, Y, R), t(L, Y, S)) :- insert(X, R, S)."
  "tree(0, S, T, T) :- !. tree(N, S, T, U) :- X is (S*7919+13) mod 1009, insert(X, T, V), M is N-1, tree(M, X, V, U)."
  "walk(nil, 0). walk(t(L, X, R), S) :- walk(L, A), walk(R, B), S is A+B+X."
  "counter(0).";

static const struct { const char *name; unsigned int arity; Func function; } foreigns[] =
{ { "is", 2, pl_is }, { "<", 2, pl_less }, { ">", 2, pl_greater }, { ">=", 2, pl_ge }, { "=:=", 2, pl_eq }, { "=\\=", 2, pl_ne }, { "=", 2, pl_unify },
  { "fail", 0, pl_fail }, { "assertz", 1, pl_assertz }, { "retract", 1, pl_retract }, { "recordz", 2, pl_recordz }, { "recordedlist", 2, pl_recorded_list },
};

static NOINLINE unsigned long profileSum(void)
{ unsigned long sum = 0;

  for(unsigned int i = 1; i < GD.functors; i++)
  { const struct definition *def = GD.functor_array[i]->definition;
    if ( def )
      sum += def->profile.calls + def->profile.redos - def->profile.exits;
  }
  return sum;
}

int main(int argc, char **argv)
{ char text[256];
  unsigned long solutions = 0, kinds[8] = {0};

  tr_init(argc, argv);
  TR_GLOBAL(LD, "struct PL_local_data");
  TR_GLOBAL(GD, "struct PL_global_data");
  TR_GLOBAL(operators, "op_def []");
  TR_GLOBAL(compile_info, "struct compile_info");
  TR_GLOBAL(FUNCTOR_dot2, "unsigned long");
  TR_GLOBAL(FUNCTOR_prove2, "unsigned long");
  TR_GLOBAL(FUNCTOR_plus2, "unsigned long");
  TR_GLOBAL(FUNCTOR_minus2, "unsigned long");
  TR_GLOBAL(ATOM_cut, "unsigned long");
  TR_GLOBAL(ATOM_true, "unsigned long");
  TR_CHECK(struct clause, codes);
  TR_CHECK(struct choice, key);
  TR_CHECK(struct definition, profile);
  LD.global.base = LD.global.top = (Word)heap_take_zeroed("unsigned long", sizeof(word), GLOBAL_WORDS * sizeof(word));
  LD.global.max = LD.global.base + GLOBAL_WORDS;
  LD.trail = HEAP_CALLOC(trail_entry, TRAIL_ENTRIES);
  LD.frames = HEAP_CALLOC(struct local_frame, FRAMES);
  LD.choices = HEAP_CALLOC(struct choice, CHOICES);
  GD.atom_array = HEAP_CALLOC(struct atom *, 8192);
  GD.functor_array = HEAP_CALLOC(struct functor_def *, 1024);
  GD.atoms = GD.functors = 1;
  ATOM_nil = atomOf("[]");
  ATOM_cut = atomOf("!");
  ATOM_true = atomOf("true");
  FUNCTOR_dot2 = lookupFunctorDef(atomOf("."), 2);
  FUNCTOR_comma2 = lookupFunctorDef(atomOf(","), 2);
  FUNCTOR_prove2 = lookupFunctorDef(atomOf(":-"), 2);
  FUNCTOR_plus2 = lookupFunctorDef(atomOf("+"), 2);
  FUNCTOR_minus2 = lookupFunctorDef(atomOf("-"), 2);
  FUNCTOR_star2 = lookupFunctorDef(atomOf("*"), 2);
  FUNCTOR_divide2 = lookupFunctorDef(atomOf("//"), 2);
  FUNCTOR_mod2 = lookupFunctorDef(atomOf("mod"), 2);
  for(size_t i = 0; i < sizeof(foreigns)/sizeof(*foreigns); i++)
    procedureOf(valueFunctor(lookupFunctorDef(atomOf(foreigns[i].name), foreigns[i].arity)))->function = foreigns[i].function;
  consult(program);
  for(int i = 0; i < 9000; i++)		/* a graph, and families */
  { snprintf(text, sizeof text, "edge(city%d, city%d, %d).", i % 2000, (int)(tr_rand() % 2000), (int)(tr_rand() % 90) + 10);
    consult(text);
    if ( i < 3000 )
    { snprintf(text, sizeof text, "parent(%d, %d).", i / 3, i + 1);
      consult(text);
    }
  }
  if ( getenv("SHOW") ) fprintf(stderr, "consulted\n");
  for(unsigned long turn = 0; tr_more(); turn++)
  { uint64_t r = tr_rand() >> 12;
    int a = (int)(r % 2000), b = (int)((r >> 20) % 2000);

    switch( turn % 8 )
    { case 0: strcpy(text, "bench(6)"); break;
      case 1: snprintf(text, sizeof text, "queens(%d, Qs)", 6 + (int)(r % 3)); break;
      case 2: strcpy(text, "deriv(4, x*x+3*x*y)"); break;
      case 3: snprintf(text, sizeof text, "reach(city%d, city%d, 5)", a, b); break;
      case 4: snprintf(text, sizeof text, "grandparent(X, %d), sibling(%d, Y)", a + 50, a + 40); break;
      case 5: snprintf(text, sizeof text, "ancestor(%d, X), X > %d", a % 200, b); break;
      case 6: snprintf(text, sizeof text, "collect(city%d, 4, L), counter(N), M is N+20, count(N, M)", a); break;
      case 7: snprintf(text, sizeof text, "tree(120, %d, nil, T), walk(T, S), walk(T, S)", a); break;
    }
    unsigned long n = query(text, turn % 8 == 1 || turn % 8 >= 6 ? 1 : 40);
    kinds[turn % 8] += n;
    solutions += n;
    if ( turn % 64 == 0 )
      solutions += profileSum();
  }
  if ( getenv("SHOW") )
    fprintf(stderr, "solutions %lu %lu %lu %lu %lu %lu %lu %lu, %lu inferences, %lu backtracks, %lu indexed, atoms %u\n", kinds[0], kinds[1], kinds[2], kinds[3], kinds[4], kinds[5], kinds[6], kinds[7],
	    LD.statistics.inferences, LD.statistics.backtracks, LD.statistics.indexed, GD.atoms);
  tr_sink = solutions;
  return 0;
}
