// A pool of threads that compute: deques from which others steal, futures with counts of references, per-thread
// caches of blocks in thread-local storage, a sharded table under spin locks, parallel sorts and trees.
#include "../heap.h"
#include <stdatomic.h>
#include <stdbool.h>

#define WORKERS 3
#define DEQUE_LOG 10
#define SHARDS 16
#define BODIES 600
#define RECORDS 4096
#define OWN 32

typedef struct job job_t;
typedef struct worker worker_t;

typedef void job_run(worker_t *w, job_t *j);

struct job {
	job_run          *run;
	job_t            *parent;
	_Atomic int       unfinished;
	uint16_t          kind, depth;
	union {
		struct { int lo, hi; } range;
		struct { struct record *from, *to; int n; } sort;
		struct { uint32_t keys[4]; } look;
		struct { int cell; float theta; } tree;
	} arg;
	job_t            *next_free;
};

typedef struct {
	_Atomic long      top;
	char              pad0[56];
	_Atomic long      bottom;
	char              pad1[56];
	job_t            *_Atomic slots[1 << DEQUE_LOG];
} deque_t;

struct record {
	uint32_t          key;
	float             value;
	uint64_t          payload;
};

struct body {
	float             pos[3], vel[3], acc[3];
	float             mass;
};

// An octree; children are by number, 0: none, negative: a body.
struct cell {
	float             centre[3], half;
	float             mass, com[3];
	int               child[8];
	int               count;
};

struct entry {
	struct entry     *next;
	uint32_t          key, hits;
	double            sum;
};

typedef struct {
	_Atomic int       locked;
	unsigned          entries;
	struct entry     *buckets[256];
	uint64_t          contended;
} __attribute__((aligned(64))) shard_t;

struct worker {
	deque_t           deque;
	pthread_t         thread;
	unsigned          id;
	uint32_t          rng;
	struct record    *scratch, *own;
	struct { uint64_t run, stolen, failed; } count;
};

struct world {
	struct body       bodies[BODIES];
	struct cell      *cells;
	int               used;
	_Atomic int       energy;
};

struct magazine {
	job_t            *free;
	int               loaded;
	uint64_t          taken, given;
};

static worker_t       *workers[WORKERS];
static shard_t         shards[SHARDS];
static struct world   *world;
static struct record  *records;
static _Atomic bool    stop;
static _Atomic unsigned long rounds;

static _Thread_local struct magazine magazine;
static _Thread_local uint64_t histogram[16];

static uint32_t next_random(uint32_t *s) { return *s = *s * 1664525u + 1013904223u; }

// ---- jobs ----

static job_t *job_new(job_run *run, job_t *parent, int kind)
{
	job_t *j = magazine.free;

	if (j) {
		magazine.free = j->next_free;
		magazine.loaded--;
	} else {
		j = HEAP_CALLOC(job_t, 1);
	}
	magazine.taken++;
	j->run = run;
	j->parent = parent;
	j->kind = kind;
	j->depth = parent ? parent->depth + 1 : 0;
	atomic_store_explicit(&j->unfinished, 1, memory_order_relaxed);
	if (parent) atomic_fetch_add_explicit(&parent->unfinished, 1, memory_order_relaxed);
	return j;
}

static void job_free(job_t *j)
{
	magazine.given++;
	if (magazine.loaded > 64) {
		HEAP_FREE(j);
		return;
	}
	j->next_free = magazine.free;
	magazine.free = j;
	magazine.loaded++;
}

static bool push(deque_t *d, job_t *j)
{
	long b = atomic_load_explicit(&d->bottom, memory_order_relaxed);
	long t = atomic_load_explicit(&d->top, memory_order_acquire);

	if (b - t >= (1 << DEQUE_LOG) - 1) return false;
	atomic_store_explicit(&d->slots[b & ((1 << DEQUE_LOG) - 1)], j, memory_order_relaxed);
	atomic_store_explicit(&d->bottom, b + 1, memory_order_release);
	return true;
}

static job_t *pop(deque_t *d)
{
	long b = atomic_load_explicit(&d->bottom, memory_order_relaxed) - 1;
	atomic_store(&d->bottom, b);
	long t = atomic_load(&d->top);
	job_t *j = NULL;

	if (t <= b) {
		j = atomic_load_explicit(&d->slots[b & ((1 << DEQUE_LOG) - 1)], memory_order_relaxed);
		if (t != b) return j;
		if (!atomic_compare_exchange_strong(&d->top, &t, t + 1)) j = NULL;
	}
	atomic_store_explicit(&d->bottom, b + 1, memory_order_relaxed);
	return j;
}

static job_t *steal(deque_t *d)
{
	long t = atomic_load(&d->top), b = atomic_load(&d->bottom);
	job_t *j;

	if (t >= b) return NULL;
	j = atomic_load_explicit(&d->slots[t & ((1 << DEQUE_LOG) - 1)], memory_order_relaxed);
	return atomic_compare_exchange_strong(&d->top, &t, t + 1) ? j : NULL;
}

static void finish(job_t *j)
{
	while (j) {
		job_t *parent = j->parent;	// whoever waits for the last one frees it
		if (atomic_fetch_sub(&j->unfinished, 1) != 1) return;
		if (parent) job_free(j);
		j = parent;
	}
}

static NOINLINE void execute(worker_t *w, job_t *j)
{
	w->count.run++;
	histogram[j->kind & 15]++;
	j->run(w, j);
	finish(j);
}

static void submit(worker_t *w, job_t *j)
{
	if (!push(&w->deque, j)) execute(w, j);
}

static NOINLINE bool work_once(worker_t *w)
{
	job_t *j = pop(&w->deque);

	if (!j) {
		worker_t *victim = workers[next_random(&w->rng) >> 16 & 3 ? (w->id + 1) % WORKERS : (w->id + 2) % WORKERS];
		if ((j = steal(&victim->deque))) w->count.stolen++;
	}
	if (!j) {
		w->count.failed++;
		return false;
	}
	execute(w, j);
	return true;
}

static void wait_for(worker_t *w, job_t *root)
{
	while (atomic_load_explicit(&root->unfinished, memory_order_acquire) > 0) work_once(w);
	job_free(root);
}

// ---- a sort that splits ----

static NOINLINE void merge(struct record *a, int n, int m, struct record *out)
{
	struct record *b = a + n, *a_end = a + n, *b_end = a + m, *o = out;

	while (a < a_end && b < b_end) *o++ = b->key < a->key ? *b++ : *a++;
	while (a < a_end) *o++ = *a++;
	while (b < b_end) *o++ = *b++;
	for (int i = 0; i < m; i++) a_end[i - n] = out[i];
}

static NOINLINE void insertion(struct record *r, int n)
{
	for (int i = 1; i < n; i++) {
		struct record x = r[i];
		int k = i;
		for (; k > 0 && r[k - 1].key > x.key; k--) r[k] = r[k - 1];
		r[k] = x;
	}
}

static void run_sort(worker_t *w, job_t *j)
{
	struct record *r = j->arg.sort.from;
	int n = j->arg.sort.n;

	for (int at = 0; at < n; at += 16) insertion(r + at, n - at < 16 ? n - at : 16);
	for (int width = 16; width < n; width *= 2)
		for (int at = 0; at + width < n; at += 2 * width)
			merge(r + at, width, n - at < 2 * width ? n - at : 2 * width, w->scratch);
}

// ---- bodies that attract one another ----

static int new_cell(struct world *s, const float *centre, float half)
{
	struct cell *c = &s->cells[s->used];

	memset(c, 0, sizeof *c);
	for (int k = 0; k < 3; k++) c->centre[k] = centre[k];
	c->half = half;
	return s->used++;
}

static NOINLINE void insert(struct world *s, int body)
{
	const float *p = s->bodies[body].pos;
	int at = 0;

	for (int depth = 0; depth < 24; depth++) {
		struct cell *c = &s->cells[at];
		int octant = (p[0] > c->centre[0]) | (p[1] > c->centre[1]) << 1 | (p[2] > c->centre[2]) << 2;
		int there = c->child[octant];
		c->count++;
		if (there == 0) {
			c->child[octant] = ~body;
			return;
		}
		if (there > 0) {
			at = there;
			continue;
		}
		float centre[3], half = c->half / 2;
		for (int k = 0; k < 3; k++) centre[k] = c->centre[k] + (octant >> k & 1 ? half : -half);
		int made = new_cell(s, centre, half);
		const float *q = s->bodies[~there].pos;
		int sub = (q[0] > centre[0]) | (q[1] > centre[1]) << 1 | (q[2] > centre[2]) << 2;
		s->cells[made].child[sub] = there;
		s->cells[made].count = 1;
		s->cells[at].child[octant] = made;
		at = made;
	}
}

static NOINLINE void summarise(struct world *s)
{
	for (int i = s->used - 1; i >= 0; i--) {
		struct cell *c = &s->cells[i];
		for (int o = 0; o < 8; o++) {
			int child = c->child[o];
			const float *p;
			float m;
			if (child == 0) continue;
			if (child < 0) {
				p = s->bodies[~child].pos;
				m = s->bodies[~child].mass;
			} else {
				p = s->cells[child].com;
				m = s->cells[child].mass;
			}
			for (int k = 0; k < 3; k++) c->com[k] = (c->com[k] * c->mass + p[k] * m) / (c->mass + m);
			c->mass += m;
		}
	}
}

static void attract(struct body *b, const float *p, float m)
{
	float d[3], r2 = 0.05f;

	for (int k = 0; k < 3; k++) {
		d[k] = p[k] - b->pos[k];
		r2 += d[k] * d[k];
	}
	for (int k = 0; k < 3; k++) b->acc[k] += d[k] * m / (r2 * r2);
}

static void run_attract(worker_t *w, job_t *j)
{
	struct world *s = world;
	int stack[64];

	(void)w;
	for (int i = j->arg.range.lo; i < j->arg.range.hi; i++) {
		struct body *b = &s->bodies[i];
		int depth = 0, visited = 0;
		memset(b->acc, 0, sizeof b->acc);
		stack[depth++] = 0;
		while (depth) {
			const struct cell *c = &s->cells[stack[--depth]];
			float far = 0;
			visited++;
			for (int k = 0; k < 3; k++) far += (c->com[k] - b->pos[k]) * (c->com[k] - b->pos[k]);
			if (4 * c->half * c->half < 0.8f * far) {
				attract(b, c->com, c->mass);
				continue;
			}
			for (int o = 0; o < 8; o++) {
				int child = c->child[o];
				if (child < 0 && ~child != i) attract(b, s->bodies[~child].pos, s->bodies[~child].mass);
				else if (child > 0 && depth < 64) stack[depth++] = child;
			}
		}
		atomic_fetch_add_explicit(&s->energy, visited, memory_order_relaxed);
	}
}

static NOINLINE void integrate(struct body *b, int n, float dt)
{
	for (; n--; b++)
		for (int k = 0; k < 3; k++) {
			b->vel[k] = 0.999f * b->vel[k] + dt * b->acc[k];
			b->pos[k] += dt * b->vel[k];
			if (b->pos[k] > 10 || b->pos[k] < -10) b->vel[k] = -b->vel[k];
		}
}

// ---- a table that all write ----

static NOINLINE struct entry *entry_of(shard_t *s, uint32_t key)
{
	struct entry **link = &s->buckets[key >> 4 & 255];

	for (struct entry *e = *link; e; link = &e->next, e = e->next)
		if (e->key == key) {
			*link = e->next;		// to the front
			e->next = s->buckets[key >> 4 & 255];
			return s->buckets[key >> 4 & 255] = e;
		}
	if (s->entries == 300) return NULL;
	struct entry *e = HEAP_CALLOC(struct entry, 1);
	e->key = key;
	e->next = s->buckets[key >> 4 & 255];
	s->entries++;
	return s->buckets[key >> 4 & 255] = e;
}

static void run_look(worker_t *w, job_t *j)
{
	for (int i = 0; i < 4; i++) {
		uint32_t key = j->arg.look.keys[i];
		shard_t *s = &shards[key % SHARDS];
		while (atomic_exchange_explicit(&s->locked, 1, memory_order_acquire)) {
			s->contended++;
			__builtin_ia32_pause();
		}
		struct entry *e = entry_of(s, key);
		if (e) {
			e->hits++;
			e->sum += w->id + 0.5;
		}
		atomic_store_explicit(&s->locked, 0, memory_order_release);
	}
}

// ---- what goes round ----

static NOINLINE void make_looks(worker_t *w, job_t *parent, int n)
{
	for (int i = 0; i < n; i++) {
		job_t *j = job_new(run_look, parent, 3);
		for (int k = 0; k < 4; k++) j->arg.look.keys[k] = (next_random(&w->rng) >> 12) * (i + 1u) % 6000;
		submit(w, j);
	}
}

// A worker that has nothing to do, and nobody to steal from, makes work itself.
static void idle(worker_t *w)
{
	job_t *root = job_new(run_look, NULL, 4);

	memset(&root->arg, 0, sizeof root->arg);
	for (int at = 0; at < OWN; at += OWN / 2) {
		job_t *j = job_new(run_sort, root, 5);
		for (int i = at; i < at + OWN / 2; i++) {
			w->own[i].key = next_random(&w->rng) >> 10;
			w->own[i].value += 0.5f;
		}
		j->arg.sort.from = w->own + at;
		j->arg.sort.to = w->own + at + OWN / 2;
		j->arg.sort.n = OWN / 2;
		submit(w, j);
	}
	make_looks(w, root, 8);
	execute(w, root);
	wait_for(w, root);
}

static void round_of(worker_t *w)
{
	job_t *root = job_new(run_look, NULL, 0);
	static const float origin[3];

	memset(&root->arg, 0, sizeof root->arg);
	world->used = 0;
	new_cell(world, origin, 12);
	for (int i = 0; i < BODIES; i++) insert(world, i);
	summarise(world);
	for (int lo = 0; lo < BODIES; lo += 50) {
		job_t *j = job_new(run_attract, root, 1);
		j->arg.range.lo = lo;
		j->arg.range.hi = lo + 50;
		submit(w, j);
	}
	for (int i = 0; i < RECORDS; i++) records[i].key = next_random(&w->rng) >> 8;
	for (int at = 0; at < RECORDS; at += 256) {
		job_t *j = job_new(run_sort, root, 2);
		j->arg.sort.from = records + at;
		j->arg.sort.to = records + at + 256;
		j->arg.sort.n = 256;
		submit(w, j);
	}
	make_looks(w, root, 200);
	execute(w, root);
	wait_for(w, root);
	integrate(world->bodies, BODIES, 0.001f);
	rounds++;
}

static void *worker_main(void *argument)
{
	worker_t *w = argument;

	if (w->id) tr_thread();
	TR_TLS(magazine, "struct magazine");
	TR_TLS(histogram, "uint64_t []");
	while (w->id == 0 ? tr_more() : !stop) {
		if (w->id == 0) round_of(w);
		else for (int i = 0; i < 100; i++)
			if (!work_once(w)) idle(w);
	}
	stop = true;
	return NULL;
}

int main(int argc, char **argv)
{
	tr_init(argc, argv);
	TR_GLOBAL(workers, "worker_t * []");
	TR_GLOBAL(shards, "shard_t []");
	TR_GLOBAL(world, "struct world *");
	TR_GLOBAL(records, "struct record *");
	TR_GLOBAL(rounds, "unsigned long");
	TR_CHECK(deque_t, slots);
	TR_CHECK(job_t, arg);
	TR_CHECK(shard_t, contended);
	TR_CHECK(worker_t, count);
	world = HEAP_CALLOC(struct world, 1);
	world->cells = HEAP_CALLOC(struct cell, 8 * BODIES);
	records = HEAP_CALLOC(struct record, RECORDS);
	for (int i = 0; i < BODIES; i++) {
		struct body *b = &world->bodies[i];
		for (int k = 0; k < 3; k++) b->pos[k] = (float)(tr_rand() % 1600) / 100 - 8;
		b->mass = 1 + (float)(i % 7);
	}
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i] = HEAP_CALLOC(worker_t, 1);
		workers[i]->id = i;
		workers[i]->rng = i + 1;
		workers[i]->scratch = HEAP_CALLOC(struct record, 512);
		workers[i]->own = HEAP_CALLOC(struct record, OWN);
	}
	for (unsigned i = 1; i < WORKERS; i++) pthread_create(&workers[i]->thread, NULL, worker_main, workers[i]);
	worker_main(workers[0]);
	for (unsigned i = 1; i < WORKERS; i++) pthread_join(workers[i]->thread, NULL);
	tr_sink = rounds + world->energy;
	return 0;
}
