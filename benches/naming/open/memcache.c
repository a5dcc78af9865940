/* A cache server's heart in the manner of memcached: slab classes, chained
 * hash table that grows while it is used, hot/warm/cold queues, a text
 * protocol. */
#include "../heap.h"

typedef unsigned int rel_time_t;

#define ITEM_LINKED 1
#define ITEM_SLABBED 4
#define ITEM_FETCHED 8
#define ITEM_ACTIVE 16

#define HOT_LRU 0
#define WARM_LRU 64
#define COLD_LRU 128

#define MAX_CLASSES 12
#define PAGE_SIZE 16384
#define MAX_TOKENS 6
#define SCRIPTS 600

typedef struct _stritem {
  struct _stritem *next;
  struct _stritem *prev;
  struct _stritem *h_next; /* hash chain next */
  rel_time_t time;         /* least recent access */
  rel_time_t exptime;
  int nbytes;
  unsigned short refcount;
  uint16_t it_flags;
  uint8_t slabs_clsid;
  uint8_t nkey;
  union {
    uint64_t cas;
    char end;
  } data[];
} item;

#define ITEM_key(it) (((char *)&((it)->data)) + sizeof(uint64_t))
#define ITEM_data(it) (ITEM_key(it) + (it)->nkey + 1)
#define ITEM_cas(it) ((it)->data->cas)

typedef struct {
  unsigned int size;    /* of items */
  unsigned int perslab; /* items of a page */
  void *slots;          /* list of free items */
  unsigned int sl_curr; /* free items in it */
  unsigned int slabs;
  void **slab_list;
  unsigned int list_size;
} slabclass_t;

typedef struct {
  uint64_t evicted, expired, moves_to_warm, moves_to_cold;
  uint64_t get_hits, get_misses, set_cmds;
} itemstats_t;

typedef struct {
  char *value;
  size_t length;
} token_t;

enum conn_states { conn_new_cmd, conn_parse, conn_nread, conn_write, conn_closing };

typedef struct conn {
  int sfd;
  enum conn_states state;
  rel_time_t last_cmd_time;
  char *rbuf, *rcurr;
  int rsize, rbytes;
  char *wbuf;
  int wsize, wbytes;
  item *item; /* being read into */
  struct conn *next;
  struct {
    uint64_t cmds, bytes_in, bytes_out;
    unsigned errors;
  } stats;
} conn;

typedef struct {
  char *bytes;
  int length;
  unsigned played;
} script_t;

static slabclass_t slabclass[MAX_CLASSES];
static itemstats_t itemstats[MAX_CLASSES];
static item *heads[256], *tails[256];
static unsigned int sizes[256];

static item **primary_hashtable, **old_hashtable;
static unsigned int hashpower = 8, expand_bucket, hash_items;
static int expanding;
static rel_time_t current_time = 2;
static uint64_t cas_id;
static int total_pages, max_pages = 40;

static uint32_t hash_of(const char *key, size_t length) {
  uint32_t h = 0x811c9dc5;
  while (length--) h = (h ^ (uint8_t)*key++) * 0x01000193;
  return h;
}

/* ---------------------------------------------------------------- slabs */

static void slabs_init(double factor) {
  unsigned int size = 80;
  for (int i = 1; i < MAX_CLASSES; i++) {
    slabclass[i].size = size;
    slabclass[i].perslab = PAGE_SIZE / size;
    size = ((unsigned)(size * factor) + 7) & ~7u;
  }
}

static unsigned int slabs_clsid(size_t size) {
  unsigned int id = 1;
  while (size > slabclass[id].size)
    if (++id == MAX_CLASSES) return 0;
  return id;
}

static void do_slabs_free(void *ptr, unsigned int id) {
  slabclass_t *p = &slabclass[id];
  item *it = ptr;
  it->it_flags = ITEM_SLABBED;
  it->slabs_clsid = id;
  it->prev = 0;
  it->next = p->slots;
  if (it->next) it->next->prev = it;
  p->slots = it;
  p->sl_curr++;
}

static int do_slabs_newslab(unsigned int id) {
  slabclass_t *p = &slabclass[id];
  if (total_pages == max_pages && p->slabs) return 0;
  if (p->slabs == p->list_size) {
    p->list_size = p->list_size ? 2 * p->list_size : 16;
    p->slab_list = HEAP_REALLOC(p->slab_list, void *, p->list_size);
  }
  char *ptr = (char *)heap_take("item", p->size, p->size * p->perslab);
  p->slab_list[p->slabs++] = ptr;
  total_pages++;
  for (unsigned int x = 0; x < p->perslab; x++, ptr += p->size) do_slabs_free(ptr, id);
  return 1;
}

static NOINLINE void *do_slabs_alloc(unsigned int id) {
  slabclass_t *p = &slabclass[id];
  item *it = NULL;
  if (p->sl_curr == 0 && !do_slabs_newslab(id)) return NULL;
  it = (item *)p->slots;
  p->slots = it->next;
  if (it->next) it->next->prev = 0;
  it->it_flags &= ~ITEM_SLABBED;
  it->refcount = 1;
  p->sl_curr--;
  return it;
}

/* ---------------------------------------------------------------- assoc */

static item **assoc_bucket(uint32_t hv) {
  unsigned int oldbucket;
  if (expanding && (oldbucket = hv & ((1u << (hashpower - 1)) - 1)) >= expand_bucket)
    return &old_hashtable[oldbucket];
  return &primary_hashtable[hv & ((1u << hashpower) - 1)];
}

static NOINLINE item *assoc_find(const char *key, size_t nkey, uint32_t hv) {
  item *it = *assoc_bucket(hv);
  while (it) {
    if (nkey == it->nkey && memcmp(key, ITEM_key(it), nkey) == 0) return it;
    it = it->h_next;
  }
  return NULL;
}

static void assoc_insert(item *it, uint32_t hv) {
  item **bucket = assoc_bucket(hv);
  it->h_next = *bucket;
  *bucket = it;
  if (++hash_items > (3u << hashpower) / 2 && !expanding && hashpower < 14) {
    old_hashtable = primary_hashtable;
    primary_hashtable = HEAP_CALLOC(item *, 1ul << (hashpower + 1));
    hashpower++;
    expanding = 1;
    expand_bucket = 0;
  }
}

static void assoc_delete(item *gone, uint32_t hv) {
  item **pos = assoc_bucket(hv);
  while (*pos && *pos != gone) pos = &(*pos)->h_next;
  if (*pos) {
    *pos = gone->h_next;
    hash_items--;
  }
}

static NOINLINE void assoc_maintenance(int buckets) {
  for (int i = 0; i < buckets && expanding; i++) {
    item *it, *next;
    for (it = old_hashtable[expand_bucket]; it; it = next) {
      next = it->h_next;
      uint32_t bucket = hash_of(ITEM_key(it), it->nkey) & ((1u << hashpower) - 1);
      it->h_next = primary_hashtable[bucket];
      primary_hashtable[bucket] = it;
    }
    old_hashtable[expand_bucket] = NULL;
    if (++expand_bucket == 1u << (hashpower - 1)) {
      expanding = 0;
      HEAP_FREE(old_hashtable);
    }
  }
}

/* ---------------------------------------------------------------- items */

static void item_link_q(item *it) {
  item **head = &heads[it->slabs_clsid], **tail = &tails[it->slabs_clsid];
  it->prev = 0;
  it->next = *head;
  if (it->next) it->next->prev = it;
  *head = it;
  if (*tail == 0) *tail = it;
  sizes[it->slabs_clsid]++;
}

static void item_unlink_q(item *it) {
  item **head = &heads[it->slabs_clsid], **tail = &tails[it->slabs_clsid];
  if (*head == it) *head = it->next;
  if (*tail == it) *tail = it->prev;
  if (it->next) it->next->prev = it->prev;
  if (it->prev) it->prev->next = it->next;
  sizes[it->slabs_clsid]--;
}

static void item_free(item *it) {
  do_slabs_free(it, it->slabs_clsid & 63);
}

static NOINLINE void do_item_unlink(item *it) {
  if (!(it->it_flags & ITEM_LINKED)) return;
  it->it_flags &= ~ITEM_LINKED;
  assoc_delete(it, hash_of(ITEM_key(it), it->nkey));
  item_unlink_q(it);
  if (--it->refcount == 0) item_free(it);
}

static void do_item_link(item *it, uint32_t hv) {
  it->it_flags |= ITEM_LINKED;
  it->time = current_time;
  ITEM_cas(it) = ++cas_id;
  it->refcount++;
  assoc_insert(it, hv);
  item_link_q(it);
}

/* Moves items from one queue's tail to another, or throws them out. */
static NOINLINE int lru_pull_tail(unsigned int id, unsigned int lru, unsigned int limit, int evict) {
  int removed = 0;
  item *search = tails[id | lru], *next_it;
  for (int tries = 5; tries > 0 && search; tries--, search = next_it) {
    next_it = search->prev;
    if (search->exptime && search->exptime < current_time) {
      itemstats[id].expired++;
      do_item_unlink(search);
      removed++;
      continue;
    }
    if (search->it_flags & ITEM_ACTIVE && lru != WARM_LRU) {
      search->it_flags &= ~ITEM_ACTIVE;
      item_unlink_q(search);
      search->slabs_clsid = id | WARM_LRU;
      item_link_q(search);
      itemstats[id].moves_to_warm++;
    } else if (lru != COLD_LRU && sizes[id | lru] > limit) {
      item_unlink_q(search);
      search->slabs_clsid = id | COLD_LRU;
      item_link_q(search);
      itemstats[id].moves_to_cold++;
    } else if (evict) {
      itemstats[id].evicted++;
      do_item_unlink(search);
      removed++;
      break;
    }
  }
  return removed;
}

static item *do_item_alloc(const char *key, size_t nkey, rel_time_t exptime, int nbytes) {
  unsigned int id = slabs_clsid(sizeof(item) + nkey + 1 + nbytes + sizeof(uint64_t));
  item *it = NULL;
  if (id == 0) return NULL;
  for (int i = 0; i < 10 && !(it = do_slabs_alloc(id)); i++)
    if (!lru_pull_tail(id, COLD_LRU, 0, 1)) {
      lru_pull_tail(id, HOT_LRU, 0, 0);
      lru_pull_tail(id, WARM_LRU, 0, 0);
    }
  if (!it) return NULL;
  it->slabs_clsid = id | HOT_LRU;
  it->nkey = nkey;
  it->nbytes = nbytes;
  it->exptime = exptime;
  memcpy(ITEM_key(it), key, nkey);
  ITEM_key(it)[nkey] = 0;
  return it;
}

static item *item_get(const char *key, size_t nkey) {
  item *it = assoc_find(key, nkey, hash_of(key, nkey));
  if (it && it->exptime && it->exptime <= current_time) {
    do_item_unlink(it);
    it = NULL;
  }
  if (it) {
    it->it_flags |= it->it_flags & ITEM_FETCHED ? ITEM_ACTIVE : ITEM_FETCHED;
    it->time = current_time;
  }
  return it;
}

/* ------------------------------------------------------------- protocol */

static NOINLINE size_t tokenize_command(char *command, const char *stop, token_t *tokens) {
  size_t ntokens = 0;
  char *s = command, *e;
  for (e = s; e < stop && *e != '\r' && ntokens < MAX_TOKENS; e++)
    if (*e == ' ') {
      if (s != e) {
        tokens[ntokens].value = s;
        tokens[ntokens++].length = e - s;
      }
      s = e + 1;
    }
  if (s != e && ntokens < MAX_TOKENS) {
    tokens[ntokens].value = s;
    tokens[ntokens++].length = e - s;
  }
  return ntokens;
}

static int number_of(const token_t *t) {
  int n = 0;
  for (size_t i = 0; i < t->length; i++) n = n * 10 + (t->value[i] - '0');
  return n;
}

static void out_bytes(conn *c, const char *bytes, int n) {
  if (c->wbytes + n > c->wsize) c->wbytes = 0;
  for (int i = 0; i < n; i++) c->wbuf[c->wbytes + i] = bytes[i];
  c->wbytes += n;
  c->stats.bytes_out += n;
}

static NOINLINE void process_command(conn *c, token_t *tokens, size_t ntokens) {
  c->stats.cmds++;
  c->last_cmd_time = current_time;
  c->state = conn_write;
  if (ntokens >= 2 && tokens[0].value[0] == 'g') {
    for (size_t i = 1; i < ntokens; i++) {
      item *it = item_get(tokens[i].value, tokens[i].length);
      if (it) {
        itemstats[it->slabs_clsid & 63].get_hits++;
        out_bytes(c, ITEM_data(it), it->nbytes);
      } else itemstats[0].get_misses++;
    }
  } else if (ntokens == 5 && tokens[0].value[0] == 's') {
    int exptime = number_of(&tokens[3]), vlen = number_of(&tokens[4]);
    item *it = do_item_alloc(tokens[1].value, tokens[1].length,
                             exptime ? current_time + exptime : 0, vlen);
    if (!it) {
      c->stats.errors++;
      return;
    }
    c->item = it;
    c->state = conn_nread;
  } else if (ntokens == 2 && tokens[0].value[0] == 'd') {
    item *it = item_get(tokens[1].value, tokens[1].length);
    if (it) do_item_unlink(it);
  } else c->stats.errors++;
}

static void complete_nread(conn *c) {
  item *it = c->item, *old;
  uint32_t hv = hash_of(ITEM_key(it), it->nkey);
  int n = it->nbytes < c->rbytes ? it->nbytes : c->rbytes;
  memcpy(ITEM_data(it), c->rcurr, n);
  c->rcurr += n;
  c->rbytes -= n;
  if ((old = assoc_find(ITEM_key(it), it->nkey, hv))) do_item_unlink(old);
  do_item_link(it, hv);
  itemstats[it->slabs_clsid & 63].set_cmds++;
  if (--it->refcount == 0) item_free(it);
  c->item = NULL;
  c->state = conn_write;
}

static NOINLINE void drive_machine(conn *c) {
  token_t tokens[MAX_TOKENS];
  for (;;)
    switch (c->state) {
    case conn_new_cmd:
      c->state = c->rbytes ? conn_parse : conn_closing;
      break;
    case conn_parse: {
      char *el = memchr(c->rcurr, '\n', c->rbytes);
      if (!el) {
        c->state = conn_closing;
        break;
      }
      size_t n = tokenize_command(c->rcurr, el, tokens);
      c->rbytes -= el + 1 - c->rcurr;
      c->rcurr = el + 1;
      process_command(c, tokens, n);
      break;
    }
    case conn_nread: complete_nread(c); break;
    case conn_write: c->state = conn_new_cmd; break;
    case conn_closing: c->state = conn_new_cmd; return;
    }
}

/* What clients send: mostly gets, of keys that are asked for unevenly. */
static void write_script(script_t *script) {
  char text[4096], *p = text;
  for (int i = 0; i < 8; i++) {
    uint64_t r = tr_rand();
    unsigned key = (unsigned)((r & 0xfff) * (r >> 12 & 0xfff) >> 12);
    if (r >> 60 < 11) p += sprintf(p, "get session:%u:data user:%u\r\n", key, key * 7 & 0xfff);
    else if (r >> 60 == 15) p += sprintf(p, "delete session:%u:data\r\n", key);
    else {
      int vlen = 10 + (int)(r >> 40 & 0xff) / (r >> 50 & 7 ? 8 : 1);
      p += sprintf(p, r & 1 << 30 ? "set session:%u:data 0 %d %d\r\n" : "set user:%u 0 %d %d\r\n", key,
                   (int)(r >> 32 & 1) * 60, vlen);
      memset(p, 'a' + vlen % 26, vlen);
      p += vlen;
    }
  }
  script->length = p - text;
  script->bytes = HEAP_CALLOC(char, script->length);
  memcpy(script->bytes, text, script->length);
}

static void receive(conn *c, script_t *script) {
  script->played++;
  memcpy(c->rbuf, script->bytes, script->length);
  c->rcurr = c->rbuf;
  c->rbytes = script->length;
  c->stats.bytes_in += c->rbytes;
}

int main(int argc, char **argv) {
  tr_init(argc, argv);
  TR_GLOBAL(slabclass, "slabclass_t []");
  TR_GLOBAL(itemstats, "itemstats_t []");
  TR_GLOBAL(heads, "item * []");
  TR_GLOBAL(tails, "item * []");
  TR_GLOBAL(sizes, "unsigned int []");
  TR_GLOBAL(primary_hashtable, "item **");
  TR_GLOBAL(old_hashtable, "item **");
  TR_GLOBAL(hashpower, "unsigned int");
  TR_GLOBAL(expanding, "int");
  TR_GLOBAL(current_time, "rel_time_t");
  TR_CHECK(item, slabs_clsid);
  TR_CHECK(conn, stats);
  slabs_init(1.25);
  primary_hashtable = HEAP_CALLOC(item *, 1ul << hashpower);
  conn *conns = NULL;
  for (int i = 0; i < 30; i++) {
    conn *c = HEAP_CALLOC(conn, 1);
    c->sfd = 10 + i;
    c->rbuf = HEAP_CALLOC(char, c->rsize = 8192);
    c->wbuf = HEAP_CALLOC(char, c->wsize = 4096);
    c->next = conns;
    conns = c;
  }
  script_t *scripts = HEAP_CALLOC(script_t, SCRIPTS);
  for (int i = 0; i < SCRIPTS; i++) write_script(&scripts[i]);
  uint64_t sum = 0;
  while (tr_more()) {
    for (conn *c = conns; c; c = c->next) {
      receive(c, &scripts[tr_rand() % SCRIPTS]);
      drive_machine(c);
      assoc_maintenance(2);
      sum += c->stats.errors + c->wbuf[c->wbytes / 2];
    }
    for (unsigned int id = 1; id < MAX_CLASSES; id++) {
      lru_pull_tail(id, HOT_LRU, sizes[id] / 3, 0);
      lru_pull_tail(id, WARM_LRU, (sizes[id] + sizes[id | COLD_LRU]) / 2, 0);
      lru_pull_tail(id, COLD_LRU, 0, 0);
    }
    current_time++;
  }
  tr_sink = sum;
  return 0;
}
