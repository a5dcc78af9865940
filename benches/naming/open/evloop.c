/* evloop.c - an event loop: watchers derived from one another, timers in a four-way heap,
 * prepare/check/idle phases, tail queues, connections with chains of buffers, a proxy upstream. */
#include "../heap.h"
#include <sys/queue.h>
#include <sys/uio.h>

typedef double ev_tstamp;

enum { EV_READ = 0x01, EV_WRITE = 0x02, EV_TIMER = 0x100, EV_IDLE = 0x2000, EV_CHECK = 0x8000 };
enum { NUMPRI = 3, NFD = 192, DHEAP = 4, HEAP0 = DHEAP - 1 };

struct ev_loop;
struct ev_watcher;
typedef void (*ev_cb)(struct ev_loop *loop, struct ev_watcher *w, int revents);

/* Each kind of watcher starts with the one it is derived from. */
typedef struct ev_watcher {
  int active;
  int pending;
  int priority;
  void *data;
  ev_cb cb;
} ev_watcher;

typedef struct ev_watcher_list { ev_watcher super; struct ev_watcher_list *next; } ev_watcher_list;
typedef struct ev_watcher_time { ev_watcher super; ev_tstamp at; } ev_watcher_time;
typedef struct ev_io { ev_watcher_list super; int fd; int events; } ev_io;
typedef struct ev_timer { ev_watcher_time super; ev_tstamp repeat; } ev_timer;
typedef struct ev_idle { ev_watcher super; } ev_idle;
typedef struct ev_check { ev_watcher super; } ev_check;

typedef ev_watcher *W;
typedef ev_watcher_list *WL;
typedef ev_watcher_time *WT;

typedef struct { WL head; unsigned char events, reify, emask, unused; unsigned int egen; } ANFD;
typedef struct { W w; int events; } ANPENDING;
typedef struct { ev_tstamp at; WT w; } ANHE;

/* What the kernel would say; this program is its own kernel. */
struct kevent_sim { int fd; short revents; short bytes; };

struct ev_loop {
  ev_tstamp now, mn_now, timeout_blocktime;
  unsigned int loop_count, loop_depth;
  ANFD *anfds;
  int anfdmax;
  ANPENDING *pendings[NUMPRI];
  int pendingmax[NUMPRI], pendingcnt[NUMPRI];
  int *fdchanges;
  int fdchangecnt;
  ANHE *timers;
  int timermax, timercnt;
  ev_idle **idles;
  int idlecnt;
  ev_check *check;
  struct kevent_sim events[32];
  unsigned long invoked[4];
};

struct chunk {
  STAILQ_ENTRY(chunk) link;
  unsigned short off, len;
  char mem[116];
};

struct upstream {
  const char *host;
  int weight, current_weight, effective_weight;
  unsigned fails, conns;
  ev_tstamp checked;
};

enum phase { P_HEADER, P_LENGTH, P_BODY, P_PROXY, P_REPLY, P_LINGER };

struct conn {
  TAILQ_ENTRY(conn) entry;
  ev_io io;
  ev_timer timeout;
  enum phase phase;
  uint32_t need, got, checksum;
  STAILQ_HEAD(chunks, chunk) in, out;
  struct upstream *peer;
  struct { uint32_t requests, bytes_in, bytes_out; float latency; } stat;
  ev_tstamp started;
};

struct server {
  TAILQ_HEAD(conns, conn) active, closed;
  STAILQ_HEAD(, chunk) spare;
  struct upstream *peers;
  int npeers;
  unsigned long accepted, timedout, lingering;
  ev_timer sweep;
  ev_idle idle;
  ev_check check;
  uint32_t histogram[16];
  struct iovec iov[8];
};

static struct server srv;
static struct ev_loop *default_loop;
static uint32_t prng = 2463534242u;

static uint32_t rnd(void)
{
  prng ^= prng << 13;
  prng ^= prng >> 17;
  return prng ^= prng << 5;
}

/* ------------------------------------------------------------------ loop */

static inline ev_tstamp ANHE_at(ANHE he) { return he.at; }

static void upheap(ANHE *heap, int k)
{
  ANHE he = heap[k];
  for (;;) {
    int p = ((k - HEAP0 - 1) / DHEAP) + HEAP0;
    if (p == k || ANHE_at(heap[p]) <= ANHE_at(he)) break;
    heap[k] = heap[p];
    heap[k].w->super.active = k;
    k = p;
  }
  heap[k] = he;
  he.w->super.active = k;
}

static void downheap(ANHE *heap, int N, int k)
{
  ANHE he = heap[k];
  ANHE *E = heap + N + HEAP0;
  for (;;) {
    ev_tstamp minat;
    ANHE *minpos, *pos = heap + DHEAP * (k - HEAP0) + HEAP0 + 1;
    if (pos + DHEAP - 1 < E) {
      (minpos = pos + 0), (minat = ANHE_at(*minpos));
      if (ANHE_at(pos[1]) < minat) (minpos = pos + 1), (minat = ANHE_at(*minpos));
      if (ANHE_at(pos[2]) < minat) (minpos = pos + 2), (minat = ANHE_at(*minpos));
      if (ANHE_at(pos[3]) < minat) (minpos = pos + 3), (minat = ANHE_at(*minpos));
    } else if (pos < E) {
      (minpos = pos + 0), (minat = ANHE_at(*minpos));
      if (pos + 1 < E && ANHE_at(pos[1]) < minat) (minpos = pos + 1), (minat = ANHE_at(*minpos));
      if (pos + 2 < E && ANHE_at(pos[2]) < minat) (minpos = pos + 2), (minat = ANHE_at(*minpos));
    } else
      break;
    if (ANHE_at(he) <= minat) break;
    heap[k] = *minpos;
    minpos->w->super.active = k;
    k = minpos - heap;
  }
  heap[k] = he;
  he.w->super.active = k;
}

static NOINLINE void ev_feed_event(struct ev_loop *loop, void *w, int revents)
{
  W w_ = (W)w;
  int pri = w_->priority;
  if (w_->pending)
    loop->pendings[pri][w_->pending - 1].events |= revents;
  else {
    w_->pending = ++loop->pendingcnt[pri];
    if (w_->pending > loop->pendingmax[pri]) {
      loop->pendingmax[pri] = loop->pendingmax[pri] ? loop->pendingmax[pri] * 2 : 64;
      loop->pendings[pri] = HEAP_REALLOC(loop->pendings[pri], ANPENDING, loop->pendingmax[pri]);
    }
    loop->pendings[pri][w_->pending - 1].w = w_;
    loop->pendings[pri][w_->pending - 1].events = revents;
  }
}

static NOINLINE void ev_invoke_pending(struct ev_loop *loop)
{
  for (int pri = NUMPRI; pri--;)
    while (loop->pendingcnt[pri]) {
      ANPENDING *p = loop->pendings[pri] + --loop->pendingcnt[pri];
      if (!p->w) continue;
      p->w->pending = 0;
      loop->invoked[p->events & EV_TIMER ? 0 : p->events & EV_IDLE ? 1 : 2]++;
      p->w->cb(loop, p->w, p->events);
    }
}

static void clear_pending(struct ev_loop *loop, W w)
{
  if (w->pending) {
    loop->pendings[w->priority][w->pending - 1].w = NULL;
    w->pending = 0;
  }
}

static NOINLINE void ev_timer_start(struct ev_loop *loop, ev_timer *w, ev_tstamp after)
{
  w->super.at = after + loop->mn_now;
  if (++loop->timercnt + HEAP0 >= loop->timermax) {
    loop->timermax = loop->timermax ? loop->timermax * 2 : 64;
    loop->timers = HEAP_REALLOC(loop->timers, ANHE, loop->timermax);
  }
  w->super.super.active = loop->timercnt + HEAP0 - 1;
  loop->timers[w->super.super.active].w = (WT)w;
  loop->timers[w->super.super.active].at = w->super.at;
  upheap(loop->timers, w->super.super.active);
}

static NOINLINE void ev_timer_stop(struct ev_loop *loop, ev_timer *w)
{
  clear_pending(loop, (W)w);
  if (!w->super.super.active) return;
  int active = w->super.super.active;
  --loop->timercnt;
  if (active < loop->timercnt + HEAP0) {
    loop->timers[active] = loop->timers[loop->timercnt + HEAP0];
    if (active > HEAP0 &&
        ANHE_at(loop->timers[active]) <= ANHE_at(loop->timers[((active - HEAP0 - 1) / DHEAP) + HEAP0]))
      upheap(loop->timers, active);
    else
      downheap(loop->timers, loop->timercnt, active);
  }
  w->super.super.active = 0;
}

static NOINLINE void ev_timer_again(struct ev_loop *loop, ev_timer *w)
{
  clear_pending(loop, (W)w);
  if (w->super.super.active) {
    w->super.at = loop->mn_now + w->repeat;
    loop->timers[w->super.super.active].at = w->super.at;
    downheap(loop->timers, loop->timercnt, w->super.super.active);
  } else
    ev_timer_start(loop, w, w->repeat);
}

static NOINLINE void timers_reify(struct ev_loop *loop)
{
  while (loop->timercnt && ANHE_at(loop->timers[HEAP0]) < loop->mn_now) {
    ev_timer *w = (ev_timer *)loop->timers[HEAP0].w;
    if (w->repeat > 0) {
      w->super.at += w->repeat;
      if (w->super.at < loop->mn_now) w->super.at = loop->mn_now;
      loop->timers[HEAP0].at = w->super.at;
      downheap(loop->timers, loop->timercnt, HEAP0);
    } else
      ev_timer_stop(loop, w);
    ev_feed_event(loop, w, EV_TIMER);
  }
}

static void fd_change(struct ev_loop *loop, int fd)
{
  unsigned char reify = loop->anfds[fd].reify;
  loop->anfds[fd].reify = 1;
  if (!reify) loop->fdchanges[loop->fdchangecnt++] = fd;
}

static void ev_io_start(struct ev_loop *loop, ev_io *w)
{
  w->super.super.active = 1;
  w->super.next = loop->anfds[w->fd].head;
  loop->anfds[w->fd].head = (WL)w;
  fd_change(loop, w->fd);
}

static void ev_io_stop(struct ev_loop *loop, ev_io *w)
{
  clear_pending(loop, (W)w);
  for (WL *head = &loop->anfds[w->fd].head; *head; head = &(*head)->next)
    if (*head == (WL)w) {
      *head = w->super.next;
      break;
    }
  w->super.super.active = 0;
  fd_change(loop, w->fd);
}

static NOINLINE void fd_reify(struct ev_loop *loop)
{
  for (int i = 0; i < loop->fdchangecnt; ++i) {
    ANFD *anfd = loop->anfds + loop->fdchanges[i];
    unsigned char events = 0;
    for (ev_io *w = (ev_io *)anfd->head; w; w = (ev_io *)((WL)w)->next) events |= w->events;
    anfd->reify = 0;
    if (anfd->events != events) anfd->egen++;
    anfd->events = events;
  }
  loop->fdchangecnt = 0;
}

static NOINLINE void backend_poll(struct ev_loop *loop)
{
  for (int i = 0; i < 32; i++) {
    struct kevent_sim *ev = &loop->events[i];
    ev->fd = rnd() % NFD;
    ev->revents = rnd() & (EV_READ | EV_WRITE);
    ev->bytes = 4 + rnd() % 30;
  }
  for (int i = 0; i < 32; i++) {
    ANFD *anfd = &loop->anfds[loop->events[i].fd];
    if (anfd->reify || !(anfd->events & loop->events[i].revents)) continue;
    for (ev_io *w = (ev_io *)anfd->head; w; w = (ev_io *)((WL)w)->next) {
      int got = w->events & loop->events[i].revents;
      if (got) ev_feed_event(loop, w, got | loop->events[i].bytes << 16);
    }
  }
}

static void ev_run(struct ev_loop *loop, int turns)
{
  while (turns--) {
    ++loop->loop_depth;
    fd_reify(loop);
    backend_poll(loop);
    loop->loop_count++;
    loop->now = loop->mn_now += 0.02;
    timers_reify(loop);
    for (int i = 0; i < loop->idlecnt && !loop->pendingcnt[1]; i++) ev_feed_event(loop, loop->idles[i], EV_IDLE);
    if (loop->check) ev_feed_event(loop, loop->check, EV_CHECK);
    ev_invoke_pending(loop);
    --loop->loop_depth;
  }
}

/* ---------------------------------------------------------------- server */

static struct chunk *chunk_get(void)
{
  struct chunk *c = STAILQ_FIRST(&srv.spare);
  if (c)
    STAILQ_REMOVE_HEAD(&srv.spare, link);
  else
    c = HEAP_MALLOC(struct chunk);
  c->off = c->len = 0;
  return c;
}

static NOINLINE void chunks_free(struct chunks *q)
{
  struct chunk *c;
  while ((c = STAILQ_FIRST(q))) {
    STAILQ_REMOVE_HEAD(q, link);
    STAILQ_INSERT_HEAD(&srv.spare, c, link);
  }
}

static NOINLINE void receive(struct conn *c, int bytes)
{
  while (bytes > 0) {
    /* the C library's macros have none that gives the last one */
    struct chunk *last = STAILQ_EMPTY(&c->in)
                             ? NULL
                             : (struct chunk *)((char *)c->in.stqh_last - offsetof(struct chunk, link));
    if (!last || last->len == sizeof last->mem) {
      last = chunk_get();
      STAILQ_INSERT_TAIL(&c->in, last, link);
    }
    for (; bytes > 0 && last->len < sizeof last->mem; bytes--, c->stat.bytes_in++)
      last->mem[last->len++] = 'A' + (bytes * 7 + c->got) % 26;
  }
}

/* Takes up to `most` bytes from what came in. */
static NOINLINE uint32_t consume(struct conn *c, uint32_t most)
{
  uint32_t taken = 0;
  struct chunk *k;
  while (taken < most && (k = STAILQ_FIRST(&c->in))) {
    while (k->off < k->len && taken < most) {
      c->checksum = (c->checksum << 1 | c->checksum >> 31) ^ (unsigned char)k->mem[k->off++];
      taken++;
    }
    if (k->off == k->len) {
      STAILQ_REMOVE_HEAD(&c->in, link);
      STAILQ_INSERT_HEAD(&srv.spare, k, link);
    }
  }
  return taken;
}

static NOINLINE struct upstream *pick_peer(struct server *s)
{
  struct upstream *best = NULL;
  int total = 0;
  for (struct upstream *p = s->peers; p < s->peers + s->npeers; p++) {
    if (p->fails > 3 && default_loop->now - p->checked < 1) continue;
    p->current_weight += p->effective_weight;
    total += p->effective_weight;
    if (p->effective_weight < p->weight) p->effective_weight++;
    if (!best || p->current_weight > best->current_weight) best = p;
  }
  if (!best) return NULL;
  best->current_weight -= total;
  best->checked = default_loop->now;
  best->conns++;
  return best;
}

static NOINLINE void reply(struct conn *c)
{
  for (int i = 0; i < 2; i++) {
    struct chunk *k = chunk_get();
    k->len = 40 + (c->checksum >> (8 * i) & 63);
    for (int j = 0; j < k->len; j++) k->mem[j] = "0123456789abcdef"[(c->checksum + j) & 15];
    STAILQ_INSERT_TAIL(&c->out, k, link);
  }
}

static NOINLINE int transmit(struct conn *c, int room)
{
  struct chunk *k;
  int n = 0, sent = 0;
  STAILQ_FOREACH(k, &c->out, link) {
    if (n == 8) break;
    srv.iov[n].iov_base = k->mem + k->off;
    srv.iov[n++].iov_len = k->len - k->off;
  }
  for (int i = 0; i < n && room > 0; i++) {
    int take = (int)srv.iov[i].iov_len < room ? (int)srv.iov[i].iov_len : room;
    room -= take;
    sent += take;
  }
  c->stat.bytes_out += sent;
  for (int left = sent; left > 0 && (k = STAILQ_FIRST(&c->out));) {
    int have = k->len - k->off;
    if (have > left) {
      k->off += left;
      break;
    }
    left -= have;
    STAILQ_REMOVE_HEAD(&c->out, link);
    STAILQ_INSERT_HEAD(&srv.spare, k, link);
  }
  return STAILQ_EMPTY(&c->out);
}

static void conn_close(struct ev_loop *loop, struct conn *c)
{
  ev_io_stop(loop, &c->io);
  ev_timer_stop(loop, &c->timeout);
  chunks_free(&c->in);
  chunks_free(&c->out);
  if (c->peer && c->peer->conns) c->peer->conns--;
  TAILQ_REMOVE(&srv.active, c, entry);
  TAILQ_INSERT_TAIL(&srv.closed, c, entry);
}

static void conn_io(struct ev_loop *loop, ev_watcher *w, int revents)
{
  struct conn *c = w->data;
  if (revents & EV_READ) {
    receive(c, revents >> 16);
    ev_timer_again(loop, &c->timeout);
  }
  for (;;)
    switch (c->phase) {
    case P_HEADER:
      if (!(c->got = consume(c, 24))) return;
      c->phase = P_LENGTH;
      c->started = loop->now;
      break;
    case P_LENGTH:
      c->need = 20 + (c->checksum & 0x3f);
      c->got = 0;
      c->phase = P_BODY;
      break;
    case P_BODY:
      c->got += consume(c, c->need - c->got);
      if (c->got < c->need) return;
      c->phase = P_PROXY;
      break;
    case P_PROXY:
      if (!(c->peer = pick_peer(&srv))) {
        c->phase = P_LINGER;
        break;
      }
      if ((c->checksum & 63) == 7) {
        c->peer->fails++;
        c->peer->effective_weight -= c->peer->weight / 3;
      }
      reply(c);
      c->io.events = EV_WRITE;
      fd_change(loop, c->io.fd);
      c->phase = P_REPLY;
      return;
    case P_REPLY:
      if (!(revents & EV_WRITE) || !transmit(c, revents >> 16)) return;
      c->stat.requests++;
      c->stat.latency += 0.1f * ((float)(loop->now - c->started) - c->stat.latency);
      c->peer->conns--;
      c->peer = NULL;
      c->io.events = EV_READ;
      fd_change(loop, c->io.fd);
      c->phase = P_HEADER;
      return;
    case P_LINGER:
      srv.lingering++;
      conn_close(loop, c);
      return;
    }
}

static void conn_timeout(struct ev_loop *loop, ev_watcher *w, int revents)
{
  struct conn *c = (struct conn *)((char *)w - offsetof(struct conn, timeout));
  (void)revents;
  srv.timedout++;
  if (c->peer) c->peer->fails++;
  conn_close(loop, c);
}

static void conn_open(struct ev_loop *loop, struct conn *c, int fd)
{
  c->phase = P_HEADER;
  c->io.fd = fd;
  c->io.events = EV_READ;
  c->io.super.super.cb = conn_io;
  c->io.super.super.data = c;
  c->io.super.super.priority = fd % NUMPRI;
  c->timeout.super.super.cb = conn_timeout;
  c->timeout.repeat = 2 + fd % 7;
  c->peer = NULL;
  STAILQ_INIT(&c->in);
  STAILQ_INIT(&c->out);
  TAILQ_INSERT_HEAD(&srv.active, c, entry);
  ev_io_start(loop, &c->io);
  ev_timer_again(loop, &c->timeout);
  srv.accepted++;
}

static void on_sweep(struct ev_loop *loop, ev_watcher *w, int revents)
{
  struct server *s = w->data;
  struct conn *c;
  (void)loop, (void)revents;
  memset(s->histogram, 0, sizeof s->histogram);
  TAILQ_FOREACH(c, &s->active, entry) {
    int slot = (int)(c->stat.latency * 10);
    s->histogram[slot < 0 ? 0 : slot > 15 ? 15 : slot]++;
  }
  for (int i = 0; i < s->npeers; i++)
    if (s->peers[i].fails) s->peers[i].fails--;
}

static void on_idle(struct ev_loop *loop, ev_watcher *w, int revents)
{
  struct conn *c = TAILQ_FIRST(&srv.closed);
  (void)w, (void)revents;
  if (!c) return;
  TAILQ_REMOVE(&srv.closed, c, entry);
  conn_open(loop, c, c->io.fd);
}

static void on_check(struct ev_loop *loop, ev_watcher *w, int revents)
{
  unsigned long *total = w->data;
  (void)revents;
  *total += loop->pendingcnt[0] + loop->pendingcnt[1] + loop->pendingcnt[2];
}

int main(int argc, char **argv)
{
  unsigned long backlog = 0;
  tr_init(argc, argv);
  TR_GLOBAL(srv, "struct server");
  TR_GLOBAL(default_loop, "struct ev_loop *");
  TR_GLOBAL(prng, "uint32_t");
  TR_CHECK(struct conn, stat);
  TR_CHECK(struct ev_loop, invoked);
  TR_CHECK(struct server, iov);
  TR_LOCAL(backlog, "unsigned long");
  struct ev_loop *loop = default_loop = HEAP_CALLOC(struct ev_loop, 1);
  loop->anfds = HEAP_CALLOC(ANFD, loop->anfdmax = NFD);
  loop->fdchanges = HEAP_CALLOC(int, 4 * NFD);
  loop->idles = HEAP_CALLOC(ev_idle *, 4);
  TAILQ_INIT(&srv.active);
  TAILQ_INIT(&srv.closed);
  STAILQ_INIT(&srv.spare);
  srv.npeers = 6;
  srv.peers = HEAP_CALLOC(struct upstream, srv.npeers);
  for (int i = 0; i < srv.npeers; i++) {
    srv.peers[i].host = "10.0.0.1";
    srv.peers[i].weight = srv.peers[i].effective_weight = 3 + 2 * i;
  }
  for (int fd = 0; fd < NFD; fd++) conn_open(loop, HEAP_CALLOC(struct conn, 1), fd);
  srv.sweep.super.super.cb = on_sweep;
  srv.sweep.super.super.data = &srv;
  srv.sweep.repeat = 0.5;
  ev_timer_again(loop, &srv.sweep);
  srv.idle.super.cb = on_idle;
  srv.idle.super.priority = 0;
  loop->idles[loop->idlecnt++] = &srv.idle;
  srv.check.super.cb = on_check;
  srv.check.super.priority = 2;
  srv.check.super.data = &backlog;
  loop->check = &srv.check;
  while (tr_more()) ev_run(loop, 50);
  tr_sink = backlog + srv.timedout;
  return 0;
}
