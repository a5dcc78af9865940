/* Threads that hand on work: ring buffers between two threads, tagged messages, per-thread counters
 * in thread-local storage, a shared histogram. */
#include "../heap.h"
#include <stdatomic.h>

#define SLOTS 256
#define STAGES 3
#define SESSIONS 512

enum kind { OPEN, DATA, CLOSE, REPORT };

struct data {
    uint32_t checksum;
    uint16_t length;
    uint8_t bytes[22];
};

struct message {
    uint8_t kind;
    uint8_t from;
    uint16_t hops;
    uint32_t session;
    union {
        struct {
            uint64_t time;
            uint32_t window;
        } open;
        struct data *data;
        struct {
            int reason;
            double rate;
        } close;
        uint64_t report[3];
    } body;
};

struct channel {
    _Atomic uint32_t head;
    uint32_t seen_tail;
    char apart[56];
    _Atomic uint32_t tail;
    uint32_t seen_head;
    struct message slots[SLOTS];
};

struct session {
    uint64_t bytes, opened;
    uint32_t messages, window;
    double rate;
    struct {
        unsigned reset : 1, closing : 1, losses : 14;
    } flags;
};

struct counters {
    uint64_t handled, empty, full;
    uint32_t by_kind[4];
};

struct stage {
    struct channel *in, *out;
    struct session *sessions;
    void (*handle)(struct stage *, struct message *);
    struct counters *published;
    uint32_t seed;
    unsigned id;
};

static _Thread_local struct counters counters;
static _Thread_local uint32_t recent[16];
static struct counters published[STAGES];
static _Atomic uint64_t histogram[32];
static struct data *pool;

static int send(struct channel *c, const struct message *m) {
    uint32_t head = atomic_load_explicit(&c->head, memory_order_relaxed);
    if (head - c->seen_tail == SLOTS) {
        c->seen_tail = atomic_load_explicit(&c->tail, memory_order_acquire);
        if (head - c->seen_tail == SLOTS) {
            counters.full++;
            return 0;
        }
    }
    c->slots[head % SLOTS] = *m;
    atomic_store_explicit(&c->head, head + 1, memory_order_release);
    return 1;
}

static int receive(struct channel *c, struct message *m) {
    uint32_t tail = atomic_load_explicit(&c->tail, memory_order_relaxed);
    if (tail == c->seen_head) {
        c->seen_head = atomic_load_explicit(&c->head, memory_order_acquire);
        if (tail == c->seen_head) {
            counters.empty++;
            return 0;
        }
    }
    *m = c->slots[tail % SLOTS];
    atomic_store_explicit(&c->tail, tail + 1, memory_order_release);
    return 1;
}

static NOINLINE uint32_t sum_of(const struct data *data) {
    uint32_t sum = 1;
    for (unsigned i = 0; i < data->length; i++) sum = sum * 31 + data->bytes[i];
    return sum;
}

static NOINLINE void make(struct stage *stage, struct message *m) {
    stage->seed = stage->seed * 1664525 + 1013904223;
    m->session = (stage->seed >> 8) % SESSIONS;
    m->hops = 0;
    m->from = stage->id;
    switch (stage->seed >> 28) {
    case 0:
        m->kind = OPEN;
        m->body.open.time = stage->seed;
        m->body.open.window = 64 + (stage->seed & 63);
        break;
    case 1:
        m->kind = CLOSE;
        m->body.close.reason = stage->seed & 7;
        m->body.close.rate = 0.5;
        break;
    case 2:
        m->kind = REPORT;
        for (int i = 0; i < 3; i++) m->body.report[i] = counters.handled + i;
        break;
    default:
        m->kind = DATA;
        m->body.data = &pool[stage->seed >> 16 & 1023];
        m->body.data->length = stage->seed % 22;
        m->body.data->bytes[stage->seed % 22] = stage->seed >> 12;
        m->body.data->checksum = sum_of(m->body.data);
    }
}

static void check(struct stage *stage, struct message *m) {
    recent[counters.handled % 16] = m->session;
    m->hops += stage->id;
    if (m->kind == DATA && sum_of(m->body.data) != m->body.data->checksum) m->hops |= 0x100;
}

static void account(struct stage *stage, struct message *m) {
    struct session *s = &stage->sessions[m->session];
    s->messages++;
    switch (m->kind) {
    case OPEN:
        s->opened = m->body.open.time;
        s->window = m->body.open.window;
        s->flags.closing = 0;
        break;
    case DATA:
        s->bytes += m->body.data->length;
        if (m->hops & 0x100) s->flags.losses++;
        break;
    case CLOSE:
        s->rate = 0.9 * s->rate + m->body.close.rate;
        s->flags.closing = 1;
        s->flags.reset = m->body.close.reason == 3;
        break;
    default: s->window += m->body.report[m->hops % 3] & 1;
    }
    atomic_fetch_add_explicit(&histogram[s->messages % 32], 1, memory_order_relaxed);
}

static NOINLINE void step(struct stage *stage) {
    struct message m;
    if (!stage->in) make(stage, &m);
    else if (!receive(stage->in, &m)) return;
    counters.by_kind[m.kind]++;
    counters.handled++;
    if (stage->handle) stage->handle(stage, &m);
    for (int tries = 0; stage->out && !send(stage->out, &m) && tries < 40; tries++)
        __builtin_ia32_pause();
}

static void *work(void *argument) {
    struct stage *stage = argument;
    tr_thread();
    while (tr_more()) {
        for (int i = 0; i < 400; i++) step(stage);
        *stage->published = counters;
        for (int i = 0; i < 16; i++) stage->published->full += recent[i] & 1;
    }
    return NULL;
}

int main(int argc, char **argv) {
    tr_init(argc, argv);
    TR_GLOBAL(published, "struct counters []");
    TR_GLOBAL(histogram, "unsigned long []");
    TR_GLOBAL(pool, "struct data *");
    TR_TLS(counters, "struct counters");
    TR_TLS(recent, "uint32_t []");
    TR_CHECK(struct message, body);
    TR_CHECK(struct channel, slots);
    TR_CHECK(struct session, rate);
    pool = HEAP_CALLOC(struct data, 1024);
    struct session *sessions = HEAP_CALLOC(struct session, SESSIONS);
    struct stage *stages = HEAP_CALLOC(struct stage, STAGES);
    static void (*const handlers[STAGES])(struct stage *, struct message *) = {NULL, check,
                                                                               account};
    for (unsigned i = 0; i < STAGES; i++) {
        stages[i].id = i;
        stages[i].seed = i * 77 + 1;
        stages[i].sessions = sessions;
        stages[i].handle = handlers[i];
        stages[i].published = &published[i];
        if (i) stages[i].in = stages[i - 1].out;
        if (i + 1 < STAGES) {
            struct channel *channel = HEAP_CALLOC(struct channel, 1);
            stages[i].out = channel;
        }
    }
    pthread_t threads[STAGES];
    for (int i = 0; i < STAGES; i++) pthread_create(&threads[i], NULL, work, &stages[i]);
    for (int i = 0; i < STAGES; i++) pthread_join(threads[i], NULL);
    tr_sink = published[STAGES - 1].handled;
    return 0;
}
