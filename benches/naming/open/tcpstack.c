/**
 * @file
 * A small TCP/IP stack that talks to itself: packet buffers and control blocks from
 * pools, a list of timeouts, segments that are queued, acknowledged, sent again and
 * put in order, two interfaces with a wire between them that loses packets, UDP, ARP.
 */
#include "../heap.h"

typedef uint8_t  u8_t;
typedef int8_t   s8_t;
typedef uint16_t u16_t;
typedef int16_t  s16_t;
typedef uint32_t u32_t;
typedef int32_t  s32_t;
typedef s8_t     err_t;
typedef u16_t    tcpflags_t;
typedef u32_t    tcpwnd_size_t;

#define ERR_OK    0
#define ERR_MEM  -1
#define ERR_RTE  -4
#define ERR_VAL  -6
#define ERR_CLSD -15

#define MEMP_NUM_TCP_PCB     420
#define MEMP_NUM_TCP_LISTEN  8
#define MEMP_NUM_TCP_SEG     3000
#define MEMP_NUM_UDP_PCB     24
#define MEMP_NUM_TIMEOUT     64
#define PBUF_TCP_NUM         3600
#define PBUF_UDP_NUM         256
#define TCP_MSS              460
#define TCP_SND_BUF          (4 * TCP_MSS)
#define TCP_SND_QUEUELEN     8
#define TCP_WND              (4 * TCP_MSS)
#define TCP_TMR_INTERVAL     50
#define CONNECTIONS          150

#define LWIP_MIN(x, y) (((x) < (y)) ? (x) : (y))
#define LWIP_MAX(x, y) (((x) > (y)) ? (x) : (y))
#define TCP_SEQ_LT(a, b)  ((s32_t)((u32_t)(a) - (u32_t)(b)) < 0)
#define TCP_SEQ_LEQ(a, b) ((s32_t)((u32_t)(a) - (u32_t)(b)) <= 0)
#define TCP_SEQ_GT(a, b)  ((s32_t)((u32_t)(a) - (u32_t)(b)) > 0)
#define TCP_SEQ_GEQ(a, b) ((s32_t)((u32_t)(a) - (u32_t)(b)) >= 0)
#define TCP_SEQ_BETWEEN(a, b, c) (TCP_SEQ_GEQ(a, b) && TCP_SEQ_LEQ(a, c))
#define STATS_INC(x) ++lwip_stats.x

static inline u16_t lwip_htons(u16_t n) { return (u16_t)((n << 8) | (n >> 8)); }
static inline u32_t lwip_htonl(u32_t n) { return __builtin_bswap32(n); }
#define lwip_ntohs lwip_htons
#define lwip_ntohl lwip_htonl

typedef struct ip4_addr { u32_t addr; } ip4_addr_t;

/* ---- statistics ---- */

struct stats_proto { u32_t xmit, recv, drop, chkerr, memerr, rterr, cachehit; };
struct stats_mem { const char *name; u32_t err; u16_t avail, used, max; };
struct stats_ {
  struct stats_proto link, ip, tcp, udp, etharp;
  struct stats_mem *memp[8];
  u32_t rexmit, fast_rexmit, ooseq, opened, closed;
};
static struct stats_ lwip_stats;

/* ---- pools: a header before each element, as when overflows are checked ---- */

struct memp { struct memp *next; u32_t magic; u16_t pool; u16_t allocs; };

struct memp_desc {
  const char *desc;
  struct stats_mem *stats;
  u16_t size, num;
  u8_t *base;
  struct memp **tab;
  void (*tell)(u8_t *mem);
};

struct pbuf {
  struct pbuf *next;
  void *payload;
  u16_t tot_len, len;
  u8_t type_internal, flags;
  u8_t ref, if_idx;
};

struct ip_hdr {
  u8_t _v_hl, _tos;
  u16_t _len, _id, _offset;
  u8_t _ttl, _proto;
  u16_t _chksum;
  ip4_addr_t src, dest;
};

struct tcp_hdr {
  u16_t src, dest;
  u32_t seqno, ackno;
  u16_t _hdrlen_rsvd_flags, wnd, chksum, urgp;
};

struct udp_hdr { u16_t src, dest, len, chksum; };

#define IP_HLEN 20
#define TCP_HLEN 20
#define UDP_HLEN 8
#define IP_PROTO_UDP 17
#define IP_PROTO_TCP 6
#define PBUF_FLAG_UDP 0x01
#define PBUF_ROOM_TCP ((u16_t)(sizeof(struct pbuf) + IP_HLEN + TCP_HLEN + TCP_MSS))
#define PBUF_ROOM_UDP ((u16_t)(sizeof(struct pbuf) + IP_HLEN + UDP_HLEN + 200))

#define TCP_FIN 0x01U
#define TCP_SYN 0x02U
#define TCP_RST 0x04U
#define TCP_PSH 0x08U
#define TCP_ACK 0x10U

enum tcp_state { CLOSED, LISTEN, SYN_SENT, SYN_RCVD, ESTABLISHED, FIN_WAIT_1, FIN_WAIT_2, CLOSE_WAIT, LAST_ACK, TIME_WAIT };

struct tcp_pcb;
typedef err_t (*tcp_recv_fn)(void *arg, struct tcp_pcb *tpcb, struct pbuf *p, err_t err);
typedef err_t (*tcp_sent_fn)(void *arg, struct tcp_pcb *tpcb, u16_t len);
typedef err_t (*tcp_poll_fn)(void *arg, struct tcp_pcb *tpcb);
typedef err_t (*tcp_accept_fn)(void *arg, struct tcp_pcb *newpcb, err_t err);
typedef void (*tcp_err_fn)(void *arg, err_t err);

struct tcp_seg {
  struct tcp_seg *next;
  struct pbuf *p;
  u16_t len, chksum;
  u8_t flags, chksum_swapped : 1, rexmitted : 1;
  struct tcp_hdr *tcphdr;
};

#define IP_PCB ip4_addr_t local_ip, remote_ip; u8_t netif_idx, so_options, tos, ttl

struct tcp_pcb_listen {
  IP_PCB;
  struct tcp_pcb_listen *next;
  void *callback_arg;
  tcp_accept_fn accept;
  u16_t local_port;
  u32_t accepted;
};

struct tcp_pcb {
  IP_PCB;
  struct tcp_pcb *next;
  void *callback_arg;
  enum tcp_state state;
  u8_t prio;
  u16_t local_port, remote_port;
  tcpflags_t flags;
#define TF_ACK_DELAY 0x01U
#define TF_ACK_NOW   0x02U
#define TF_INFR      0x04U
#define TF_FIN       0x20U
  u8_t polltmr, pollinterval, last_timer;
  u32_t tmr;
  u32_t rcv_nxt;
  tcpwnd_size_t rcv_wnd, rcv_ann_wnd;
  u32_t rcv_ann_right_edge;
  s16_t rtime;
  u16_t mss;
  u32_t rttest, rtseq;
  s16_t sa, sv, rto;
  u8_t nrtx, dupacks;
  u32_t lastack;
  tcpwnd_size_t cwnd, ssthresh;
  u32_t snd_nxt, snd_wl1, snd_wl2, snd_lbb;
  tcpwnd_size_t snd_wnd, snd_buf;
  u16_t snd_queuelen, unsent_oversize;
  struct tcp_seg *unsent, *unacked, *ooseq;
  struct tcp_pcb_listen *listener;
  tcp_sent_fn sent;
  tcp_recv_fn recv;
  tcp_poll_fn poll;
  tcp_err_fn errf;
};

struct udp_pcb {
  IP_PCB;
  struct udp_pcb *next;
  u8_t flags;
  u16_t local_port, remote_port;
  void (*recv)(void *arg, struct udp_pcb *pcb, struct pbuf *p, const ip4_addr_t *addr, u16_t port);
  void *recv_arg;
};

typedef void (*sys_timeout_handler)(void *arg);
struct sys_timeo { struct sys_timeo *next; u32_t time; sys_timeout_handler h; void *arg; };

typedef enum { MEMP_TCP_PCB, MEMP_TCP_PCB_LISTEN, MEMP_TCP_SEG, MEMP_UDP_PCB, MEMP_SYS_TIMEOUT, MEMP_PBUF_TCP, MEMP_PBUF_UDP, MEMP_MAX } memp_t;

#define TELL(fn, T) static void fn(u8_t *mem) { tr_region(#T, mem, sizeof(T), sizeof(T)); }
TELL(tell_tcp_pcb, struct tcp_pcb)
TELL(tell_listen, struct tcp_pcb_listen)
TELL(tell_seg, struct tcp_seg)
TELL(tell_udp_pcb, struct udp_pcb)
TELL(tell_timeo, struct sys_timeo)
static void tell_pbuf_tcp(u8_t *mem) {
  tr_region("struct pbuf", mem, sizeof(struct pbuf), sizeof(struct pbuf));
  mem += sizeof(struct pbuf);
  tr_region("struct ip_hdr", mem, IP_HLEN, IP_HLEN);
  tr_region("struct tcp_hdr", mem + IP_HLEN, TCP_HLEN, TCP_HLEN);
  tr_region("unsigned char", mem + IP_HLEN + TCP_HLEN, TCP_MSS, 1);
}
static void tell_pbuf_udp(u8_t *mem) {
  tr_region("struct pbuf", mem, sizeof(struct pbuf), sizeof(struct pbuf));
  mem += sizeof(struct pbuf);
  tr_region("struct ip_hdr", mem, IP_HLEN, IP_HLEN);
  tr_region("struct udp_hdr", mem + IP_HLEN, UDP_HLEN, UDP_HLEN);
  tr_region("unsigned char", mem + IP_HLEN + UDP_HLEN, 200, 1);
}

static struct stats_mem memp_stats[MEMP_MAX];
static struct memp *memp_tab[MEMP_MAX];
static struct memp_desc memp_pools[MEMP_MAX] = {
#define LWIP_MEMPOOL(name, num, size, tell) [MEMP_##name] = { #name, &memp_stats[MEMP_##name], size, num, NULL, &memp_tab[MEMP_##name], tell }
  LWIP_MEMPOOL(TCP_PCB, MEMP_NUM_TCP_PCB, sizeof(struct tcp_pcb), tell_tcp_pcb),
  LWIP_MEMPOOL(TCP_PCB_LISTEN, MEMP_NUM_TCP_LISTEN, sizeof(struct tcp_pcb_listen), tell_listen),
  LWIP_MEMPOOL(TCP_SEG, MEMP_NUM_TCP_SEG, sizeof(struct tcp_seg), tell_seg),
  LWIP_MEMPOOL(UDP_PCB, MEMP_NUM_UDP_PCB, sizeof(struct udp_pcb), tell_udp_pcb),
  LWIP_MEMPOOL(SYS_TIMEOUT, MEMP_NUM_TIMEOUT, sizeof(struct sys_timeo), tell_timeo),
  LWIP_MEMPOOL(PBUF_TCP, PBUF_TCP_NUM, PBUF_ROOM_TCP, tell_pbuf_tcp),
  LWIP_MEMPOOL(PBUF_UDP, PBUF_UDP_NUM, PBUF_ROOM_UDP, tell_pbuf_udp),
};

static void memp_init(void) {
  for (int i = 0; i < MEMP_MAX; i++) {
    struct memp_desc *desc = &memp_pools[i];
    size_t step = sizeof(struct memp) + ((desc->size + 15u) & ~15u);
    u8_t *mem = desc->base = (u8_t *)malloc(step * desc->num);
    *desc->tab = NULL;
    for (int k = 0; k < desc->num; k++, mem += step) {
      struct memp *memp = (struct memp *)mem;
      tr_region("struct memp", memp, sizeof(struct memp), sizeof(struct memp));
      desc->tell(mem + sizeof(struct memp));
      memp->magic = 0xcdcdcdcd;
      memp->pool = (u16_t)i;
      memp->allocs = 0;
      memp->next = *desc->tab;
      *desc->tab = memp;
    }
    desc->stats->name = desc->desc;
    desc->stats->avail = desc->num;
    lwip_stats.memp[i] = desc->stats;
  }
}

static NOINLINE void *memp_malloc(memp_t type) {
  const struct memp_desc *desc = &memp_pools[type];
  struct memp *memp = *desc->tab;
  if (memp == NULL) { desc->stats->err++; return NULL; }
  *desc->tab = memp->next;
  memp->allocs++;
  if (++desc->stats->used > desc->stats->max) desc->stats->max = desc->stats->used;
  return (u8_t *)memp + sizeof(struct memp);
}

static NOINLINE void memp_free(memp_t type, void *mem) {
  const struct memp_desc *desc = &memp_pools[type];
  struct memp *memp = (struct memp *)((u8_t *)mem - sizeof(struct memp));
  if (memp->magic != 0xcdcdcdcd || memp->pool != type) abort();
  memp->next = *desc->tab;
  *desc->tab = memp;
  desc->stats->used--;
}

/* ---- packet buffers ---- */

static NOINLINE struct pbuf *pbuf_alloc(memp_t kind, u16_t length) {
  struct pbuf *p = (struct pbuf *)memp_malloc(kind);
  if (p == NULL) { STATS_INC(link.memerr); return NULL; }
  p->next = NULL;
  p->payload = (u8_t *)p + sizeof(struct pbuf) + IP_HLEN + (kind == MEMP_PBUF_TCP ? TCP_HLEN : UDP_HLEN);
  p->tot_len = p->len = length;
  p->type_internal = (u8_t)kind;
  p->flags = kind == MEMP_PBUF_UDP ? PBUF_FLAG_UDP : 0;
  p->ref = 1;
  p->if_idx = 0;
  return p;
}

static inline void pbuf_header(struct pbuf *p, s16_t increment) {
  p->payload = (u8_t *)p->payload - increment;
  p->len = (u16_t)(p->len + increment);
  p->tot_len = (u16_t)(p->tot_len + increment);
}

static NOINLINE u8_t pbuf_free(struct pbuf *p) {
  u8_t count = 0;
  while (p != NULL) {
    if (--p->ref > 0) break;
    struct pbuf *q = p->next;
    memp_free((memp_t)p->type_internal, p);
    count++;
    p = q;
  }
  return count;
}

/* ---- checksums: of data by octets while it is copied, of headers by their fields ---- */

static inline u16_t chksum_fold(u32_t acc) {
  acc = (acc >> 16) + (acc & 0xffff);
  return (u16_t)(acc + (acc >> 16));
}

static NOINLINE u16_t lwip_chksum_copy(u8_t *dst, const u8_t *src, u16_t len) {
  u32_t even = 0, odd = 0, swap;
  for (u16_t i = 0; i < len; i++) {
    even += dst[i] = src[i];
    swap = even;
    even = odd;
    odd = swap;
  }
  if (len & 1) { swap = even; even = odd; odd = swap; }
  return chksum_fold((even << 8) + odd);
}

static NOINLINE u16_t lwip_standard_chksum(const u8_t *dataptr, u16_t len) {
  u32_t even = 0, odd = 0;
  while (len > 1) {
    even += dataptr[0];
    odd += dataptr[1];
    dataptr += 2;
    len -= 2;
  }
  if (len > 0) even += dataptr[0];
  return chksum_fold((even << 8) + odd);
}

static u16_t ip_hdr_chksum(const struct ip_hdr *h) {
  u32_t s = lwip_ntohl(h->src.addr), d = lwip_ntohl(h->dest.addr);
  u32_t acc = ((u32_t)h->_v_hl << 8 | h->_tos) + lwip_ntohs(h->_len) + lwip_ntohs(h->_id) + lwip_ntohs(h->_offset) +
              ((u32_t)h->_ttl << 8 | h->_proto) + (s >> 16) + (s & 0xffff) + (d >> 16) + (d & 0xffff);
  return (u16_t)~chksum_fold(acc);
}

static u16_t tcp_hdr_chksum(const struct tcp_hdr *h, const ip4_addr_t *src, const ip4_addr_t *dest, u16_t len, u16_t data) {
  u32_t s = lwip_ntohl(src->addr), d = lwip_ntohl(dest->addr), q = lwip_ntohl(h->seqno), a = lwip_ntohl(h->ackno);
  u32_t acc = (s >> 16) + (s & 0xffff) + (d >> 16) + (d & 0xffff) + IP_PROTO_TCP + len + lwip_ntohs(h->src) + lwip_ntohs(h->dest) +
              (q >> 16) + (q & 0xffff) + (a >> 16) + (a & 0xffff) + lwip_ntohs(h->_hdrlen_rsvd_flags) + lwip_ntohs(h->wnd) + data;
  return (u16_t)~chksum_fold(acc);
}

/* ---- interfaces, ARP, and the wire ---- */

struct netif;
typedef err_t (*netif_input_fn)(struct pbuf *p, struct netif *inp);
typedef err_t (*netif_linkoutput_fn)(struct netif *netif, struct pbuf *p);

struct etharp_entry { struct wire_slot *q; ip4_addr_t ipaddr; struct netif *netif; u8_t hwaddr[6]; u16_t ctime; u8_t state; };
static struct etharp_entry arp_table[32];
static u8_t etharp_cached_entry;

struct wire_slot { struct wire_slot *next; struct pbuf *p; u32_t due; };

struct netif {
  struct netif *next;
  ip4_addr_t ip_addr, netmask, gw;
  netif_input_fn input;
  netif_linkoutput_fn linkoutput;
  struct wire_slot *loop_first, *loop_last;
  struct netif *peer;
  u16_t mtu, loop_cnt;
  u8_t hwaddr[6], flags, num;
  char name[2];
  u32_t loss;
};
static struct netif *netif_list;
static struct netif netifs[4];
static u32_t lwip_now;
static u16_t ip_id;

static NOINLINE struct netif *ip4_route(const ip4_addr_t *dest) {
  for (struct netif *netif = netif_list; netif != NULL; netif = netif->next)
    if ((netif->flags & 1) && ((dest->addr ^ netif->ip_addr.addr) & netif->netmask.addr) == 0) return netif->peer;
  STATS_INC(ip.rterr);
  return NULL;
}

static NOINLINE const struct etharp_entry *etharp_find_addr(struct netif *netif, const ip4_addr_t *ipaddr) {
  struct etharp_entry *e = &arp_table[etharp_cached_entry];
  if (e->state && e->ipaddr.addr == ipaddr->addr && e->netif == netif) { STATS_INC(etharp.cachehit); return e; }
  int empty = 0;
  u16_t age = 0;
  for (int i = 0; i < 32; i++) {
    e = &arp_table[i];
    if (e->state && e->netif == netif && e->ipaddr.addr == ipaddr->addr) { etharp_cached_entry = (u8_t)i; return e; }
    if (!e->state || e->ctime > age) { age = e->state ? e->ctime : 0xffff; empty = i; }
  }
  e = &arp_table[empty];
  e->state = 2;
  e->ipaddr.addr = ipaddr->addr;
  e->netif = netif;
  e->ctime = 0;
  for (int i = 0; i < 6; i++) e->hwaddr[i] = netif->hwaddr[i] ^ (u8_t)(ipaddr->addr >> 24);
  STATS_INC(etharp.xmit);
  return e;
}

static void etharp_tmr(void) {
  for (int i = 0; i < 32; i++)
    if (arp_table[i].state && ++arp_table[i].ctime >= 300) arp_table[i].state = 0;
}

/* Copies the packet, as the loopback interface does, and lets the peer find it later. */
static err_t wire_linkoutput(struct netif *netif, struct pbuf *p) {
  STATS_INC(link.xmit);
  if ((tr_rand() >> 20) % 1000 < netif->loss) { STATS_INC(link.drop); return ERR_OK; }
  struct pbuf *r = pbuf_alloc((memp_t)p->type_internal, p->tot_len);
  if (r == NULL) return ERR_MEM;
  r->payload = (u8_t *)r + sizeof(struct pbuf);
  memcpy(r->payload, p->payload, p->tot_len);
  r->if_idx = netif->peer->num;
  struct wire_slot *slot = HEAP_MALLOC(struct wire_slot);
  slot->p = r;
  slot->next = NULL;
  slot->due = lwip_now + 2 + (u32_t)(tr_rand() >> 30) % 9;
  struct netif *to = netif->peer;
  if (to->loop_last) to->loop_last->next = slot;
  else to->loop_first = slot;
  to->loop_last = slot;
  to->loop_cnt++;
  return ERR_OK;
}

static NOINLINE void netif_poll(struct netif *netif) {
  struct wire_slot **link = &netif->loop_first, *slot, *last = NULL;
  unsigned looked = 0;
  while ((slot = *link) != NULL && looked++ < 400) {
    if (TCP_SEQ_GT(slot->due, lwip_now)) { last = slot; link = &slot->next; continue; }
    *link = slot->next;
    if (netif->loop_last == slot) netif->loop_last = last;
    netif->loop_cnt--;
    struct pbuf *p = slot->p;
    HEAP_FREE(slot);
    STATS_INC(link.recv);
    if (netif->input(p, netif) != ERR_OK) pbuf_free(p);
  }
}

static NOINLINE err_t ip4_output_if(struct pbuf *p, const ip4_addr_t *src, const ip4_addr_t *dest, u8_t ttl, u8_t proto, struct netif *netif) {
  pbuf_header(p, IP_HLEN);
  struct ip_hdr *iphdr = (struct ip_hdr *)p->payload;
  iphdr->_v_hl = 0x45;
  iphdr->_tos = 0;
  iphdr->_len = lwip_htons(p->tot_len);
  iphdr->_id = lwip_htons(ip_id++);
  iphdr->_offset = 0;
  iphdr->_ttl = ttl;
  iphdr->_proto = proto;
  iphdr->src.addr = src->addr;
  iphdr->dest.addr = dest->addr;
  iphdr->_chksum = lwip_htons(ip_hdr_chksum(iphdr));
  STATS_INC(ip.xmit);
  const struct etharp_entry *e = etharp_find_addr(netif, dest);
  return e->state ? netif->linkoutput(netif, p) : ERR_RTE;
}

/* ---- timeouts ---- */

static struct sys_timeo *next_timeout;

static void sys_timeout(u32_t msecs, sys_timeout_handler handler, void *arg) {
  struct sys_timeo *timeout = (struct sys_timeo *)memp_malloc(MEMP_SYS_TIMEOUT), **t;
  if (!timeout) return;
  timeout->h = handler;
  timeout->arg = arg;
  timeout->time = lwip_now + msecs;
  for (t = &next_timeout; *t && TCP_SEQ_LEQ((*t)->time, timeout->time); t = &(*t)->next) {}
  timeout->next = *t;
  *t = timeout;
}

static NOINLINE void sys_check_timeouts(void) {
  struct sys_timeo *t;
  while ((t = next_timeout) != NULL && TCP_SEQ_LEQ(t->time, lwip_now)) {
    next_timeout = t->next;
    sys_timeout_handler h = t->h;
    void *arg = t->arg;
    memp_free(MEMP_SYS_TIMEOUT, t);
    h(arg);
  }
}

struct lwip_cyclic_timer { u32_t interval_ms; void (*handler)(void); u32_t runs; };
static void tcp_tmr(void);
static struct lwip_cyclic_timer lwip_cyclic_timers[] = { { TCP_TMR_INTERVAL, tcp_tmr, 0 }, { 1000, etharp_tmr, 0 } };

static void lwip_cyclic_timer(void *arg) {
  struct lwip_cyclic_timer *cyclic = (struct lwip_cyclic_timer *)arg;
  cyclic->runs++;
  cyclic->handler();
  sys_timeout(cyclic->interval_ms, lwip_cyclic_timer, arg);
}

/* ---- TCP: control blocks and output ---- */

static struct tcp_pcb *tcp_active_pcbs, *tcp_tw_pcbs;
static struct tcp_pcb_listen *tcp_listen_pcbs;
static u32_t tcp_ticks;
static u16_t tcp_port = 0xc000;
static const u8_t tcp_backoff[13] = { 1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7, 7, 7 };

#define TCP_REG(pcbs, npcb) do { (npcb)->next = *(pcbs); *(pcbs) = (npcb); } while (0)

static NOINLINE void tcp_rmv(struct tcp_pcb **pcbs, struct tcp_pcb *npcb) {
  struct tcp_pcb **link = pcbs;
  while (*link != NULL && *link != npcb) link = &(*link)->next;
  if (*link) *link = npcb->next;
  npcb->next = NULL;
}

static void tcp_seg_free(struct tcp_seg *seg) {
  if (seg->p) pbuf_free(seg->p);
  memp_free(MEMP_TCP_SEG, seg);
}

static NOINLINE void tcp_segs_free(struct tcp_seg *seg) {
  while (seg != NULL) {
    struct tcp_seg *next = seg->next;
    tcp_seg_free(seg);
    seg = next;
  }
}

static void tcp_pcb_purge(struct tcp_pcb *pcb) {
  tcp_segs_free(pcb->ooseq);
  tcp_segs_free(pcb->unsent);
  tcp_segs_free(pcb->unacked);
  pcb->unacked = pcb->unsent = pcb->ooseq = NULL;
  pcb->rtime = -1;
}

static struct tcp_pcb *tcp_alloc(u8_t prio) {
  struct tcp_pcb *pcb = (struct tcp_pcb *)memp_malloc(MEMP_TCP_PCB);
  if (pcb == NULL) return NULL;
  memset(pcb, 0, sizeof *pcb);
  pcb->prio = prio;
  pcb->snd_buf = TCP_SND_BUF;
  pcb->rcv_wnd = pcb->rcv_ann_wnd = TCP_WND;
  pcb->ttl = 255;
  pcb->mss = TCP_MSS;
  pcb->rto = 8;
  pcb->sv = 8;
  pcb->rtime = -1;
  pcb->cwnd = 1;
  pcb->ssthresh = TCP_SND_BUF;
  pcb->tmr = tcp_ticks;
  u32_t iss = (u32_t)(tr_rand() >> 16);
  pcb->snd_wl2 = pcb->snd_nxt = pcb->lastack = pcb->snd_lbb = iss;
  return pcb;
}

static NOINLINE err_t tcp_output_segment(struct tcp_seg *seg, struct tcp_pcb *pcb, struct netif *netif) {
  if (seg->p->ref != 1) return ERR_OK;
  struct tcp_hdr *h = seg->tcphdr;
  h->ackno = lwip_htonl(pcb->rcv_nxt);
  h->wnd = lwip_htons((u16_t)pcb->rcv_ann_wnd);
  pcb->rcv_ann_right_edge = pcb->rcv_nxt + pcb->rcv_ann_wnd;
  if (pcb->rtime < 0) pcb->rtime = 0;
  if (pcb->rttest == 0) { pcb->rttest = tcp_ticks; pcb->rtseq = lwip_ntohl(h->seqno); }
  h->chksum = lwip_htons(tcp_hdr_chksum(h, &pcb->local_ip, &pcb->remote_ip, (u16_t)(seg->len + TCP_HLEN), seg->chksum));
  seg->p->payload = h;
  seg->p->len = seg->p->tot_len = (u16_t)(seg->len + TCP_HLEN);
  STATS_INC(tcp.xmit);
  return ip4_output_if(seg->p, &pcb->local_ip, &pcb->remote_ip, pcb->ttl, IP_PROTO_TCP, netif);
}

static struct tcp_seg *tcp_create_segment(const struct tcp_pcb *pcb, struct pbuf *p, u16_t len, u8_t hdrflags, u32_t seqno) {
  struct tcp_seg *seg = (struct tcp_seg *)memp_malloc(MEMP_TCP_SEG);
  if (seg == NULL) { pbuf_free(p); return NULL; }
  seg->next = NULL;
  seg->p = p;
  seg->len = len;
  seg->flags = hdrflags;
  seg->chksum = 0;
  seg->chksum_swapped = seg->rexmitted = 0;
  struct tcp_hdr *h = seg->tcphdr = (struct tcp_hdr *)((u8_t *)p + sizeof(struct pbuf) + IP_HLEN);
  h->src = lwip_htons(pcb->local_port);
  h->dest = lwip_htons(pcb->remote_port);
  h->seqno = lwip_htonl(seqno);
  h->_hdrlen_rsvd_flags = lwip_htons((u16_t)(5 << 12 | hdrflags));
  h->urgp = 0;
  return seg;
}

#define TCP_TCPLEN(seg) ((seg)->len + (((seg)->flags & (TCP_FIN | TCP_SYN)) ? 1U : 0U))

static err_t tcp_enqueue_flags(struct tcp_pcb *pcb, u8_t flags) {
  struct pbuf *p = pbuf_alloc(MEMP_PBUF_TCP, 0);
  if (!p) return ERR_MEM;
  struct tcp_seg *seg = tcp_create_segment(pcb, p, 0, flags, pcb->snd_lbb), **last;
  if (!seg) return ERR_MEM;
  for (last = &pcb->unsent; *last; last = &(*last)->next) {}
  *last = seg;
  if (flags & (TCP_SYN | TCP_FIN)) pcb->snd_lbb++;
  pcb->snd_queuelen++;
  return ERR_OK;
}

static NOINLINE err_t tcp_write(struct tcp_pcb *pcb, const u8_t *data, u16_t len) {
  if (len > pcb->snd_buf || pcb->snd_queuelen >= TCP_SND_QUEUELEN) return ERR_MEM;
  struct tcp_seg **last = &pcb->unsent;
  while (*last) last = &(*last)->next;
  for (u16_t pos = 0; pos < len;) {
    u16_t seglen = (u16_t)LWIP_MIN(len - pos, pcb->mss);
    struct pbuf *p = pbuf_alloc(MEMP_PBUF_TCP, seglen);
    if (!p) return ERR_MEM;
    u16_t chksum = lwip_chksum_copy((u8_t *)p->payload, data + pos, seglen);
    struct tcp_seg *seg = tcp_create_segment(pcb, p, seglen, TCP_ACK | (pos + seglen == len ? TCP_PSH : 0), pcb->snd_lbb);
    if (!seg) return ERR_MEM;
    seg->chksum = chksum;
    *last = seg;
    last = &seg->next;
    pcb->snd_lbb += seglen;
    pcb->snd_buf -= seglen;
    pcb->snd_queuelen++;
    pos = (u16_t)(pos + seglen);
  }
  return ERR_OK;
}

static void tcp_send_empty_ack(struct tcp_pcb *pcb) {
  struct netif *netif = ip4_route(&pcb->remote_ip);
  struct pbuf *p = pbuf_alloc(MEMP_PBUF_TCP, 0);
  if (!p || !netif) return;
  struct tcp_hdr *h = (struct tcp_hdr *)((u8_t *)p + sizeof(struct pbuf) + IP_HLEN);
  h->src = lwip_htons(pcb->local_port);
  h->dest = lwip_htons(pcb->remote_port);
  h->seqno = lwip_htonl(pcb->snd_nxt);
  h->ackno = lwip_htonl(pcb->rcv_nxt);
  h->_hdrlen_rsvd_flags = lwip_htons(5 << 12 | TCP_ACK);
  h->wnd = lwip_htons((u16_t)pcb->rcv_ann_wnd);
  h->urgp = 0;
  h->chksum = lwip_htons(tcp_hdr_chksum(h, &pcb->local_ip, &pcb->remote_ip, TCP_HLEN, 0));
  pbuf_header(p, TCP_HLEN);
  pcb->flags &= (tcpflags_t) ~(TF_ACK_DELAY | TF_ACK_NOW);
  ip4_output_if(p, &pcb->local_ip, &pcb->remote_ip, pcb->ttl, IP_PROTO_TCP, netif);
  pbuf_free(p);
}

static NOINLINE err_t tcp_output(struct tcp_pcb *pcb) {
  u32_t wnd = LWIP_MIN(pcb->snd_wnd, pcb->cwnd);
  struct tcp_seg *seg = pcb->unsent, **useg;
  struct netif *netif = ip4_route(&pcb->remote_ip);
  if (!netif) return ERR_RTE;
  if ((pcb->flags & TF_ACK_NOW) && (!seg || lwip_ntohl(seg->tcphdr->seqno) - pcb->lastack + seg->len > wnd)) {
    tcp_send_empty_ack(pcb);
    return ERR_OK;
  }
  for (useg = &pcb->unacked; *useg; useg = &(*useg)->next) {}
  while (seg && lwip_ntohl(seg->tcphdr->seqno) - pcb->lastack + seg->len <= LWIP_MAX(wnd, 1u + (seg->len == 0))) {
    if (pcb->state != SYN_SENT) pcb->flags &= (tcpflags_t) ~(TF_ACK_DELAY | TF_ACK_NOW);
    if (tcp_output_segment(seg, pcb, netif) != ERR_OK) break;
    pcb->unsent = seg->next;
    u32_t snd_nxt = lwip_ntohl(seg->tcphdr->seqno) + TCP_TCPLEN(seg);
    if (TCP_SEQ_LT(pcb->snd_nxt, snd_nxt)) pcb->snd_nxt = snd_nxt;
    seg->next = NULL;
    if (TCP_TCPLEN(seg) > 0) {
      /* What is sent again goes before what is later. */
      struct tcp_seg **cur = *useg || !pcb->unacked ? useg : &pcb->unacked;
      while (*cur && TCP_SEQ_LT(lwip_ntohl((*cur)->tcphdr->seqno), lwip_ntohl(seg->tcphdr->seqno))) cur = &(*cur)->next;
      seg->next = *cur;
      *cur = seg;
      for (; *useg; useg = &(*useg)->next) {}
    } else tcp_seg_free(seg);
    seg = pcb->unsent;
  }
  return ERR_OK;
}

static void tcp_rexmit(struct tcp_pcb *pcb) {
  struct tcp_seg *seg = pcb->unacked, **cur;
  if (!seg) return;
  pcb->unacked = seg->next;
  for (cur = &pcb->unsent; *cur && TCP_SEQ_LT(lwip_ntohl((*cur)->tcphdr->seqno), lwip_ntohl(seg->tcphdr->seqno));) cur = &(*cur)->next;
  seg->next = *cur;
  *cur = seg;
  seg->rexmitted = 1;
  if (pcb->nrtx < 0xff) pcb->nrtx++;
  pcb->rttest = 0;
  STATS_INC(rexmit);
}

static void tcp_free_closed(struct tcp_pcb **list, struct tcp_pcb *pcb, err_t err) {
  tcp_rmv(list, pcb);
  tcp_pcb_purge(pcb);
  pcb->state = CLOSED;
  STATS_INC(closed);
  if (pcb->errf) pcb->errf(pcb->callback_arg, err);
  memp_free(MEMP_TCP_PCB, pcb);
}

static NOINLINE void tcp_slowtmr(void) {
  struct tcp_pcb *pcb, *next;
  ++tcp_ticks;
  for (pcb = tcp_active_pcbs; pcb != NULL; pcb = next) {
    next = pcb->next;
    if (pcb->nrtx >= 12) { tcp_free_closed(&tcp_active_pcbs, pcb, ERR_CLSD); continue; }
    if (pcb->rtime >= 0 && pcb->rtime < 0x7fff) ++pcb->rtime;
    if (pcb->unacked != NULL && pcb->rtime >= pcb->rto) {
      pcb->rto = (s16_t)LWIP_MIN(((pcb->sa >> 3) + pcb->sv) * tcp_backoff[LWIP_MIN(pcb->nrtx, 12)], 60);
      pcb->rtime = 0;
      u32_t eff_wnd = LWIP_MIN(pcb->cwnd, pcb->snd_wnd);
      pcb->ssthresh = LWIP_MAX(eff_wnd >> 1, 2u * pcb->mss);
      pcb->cwnd = pcb->mss;
      tcp_rexmit(pcb);
      tcp_output(pcb);
    }
    if (++pcb->polltmr >= pcb->pollinterval) {
      pcb->polltmr = 0;
      if (pcb->poll) { pcb->poll(pcb->callback_arg, pcb); tcp_output(pcb); }
    }
  }
  for (pcb = tcp_tw_pcbs; pcb != NULL; pcb = next) {
    next = pcb->next;
    if (tcp_ticks - pcb->tmr > 4) { pcb->errf = NULL; tcp_free_closed(&tcp_tw_pcbs, pcb, ERR_OK); }
  }
}

static NOINLINE void tcp_fasttmr(void) {
  for (struct tcp_pcb *pcb = tcp_active_pcbs; pcb != NULL; pcb = pcb->next)
    if (pcb->flags & TF_ACK_DELAY) {
      pcb->flags |= TF_ACK_NOW;
      tcp_output(pcb);
      pcb->flags &= (tcpflags_t) ~(TF_ACK_DELAY | TF_ACK_NOW);
    }
}

static void tcp_tmr(void) {
  static u8_t tcp_timer;
  tcp_fasttmr();
  if (++tcp_timer & 1) tcp_slowtmr();
}

static void tcp_close(struct tcp_pcb *pcb) {
  if (pcb->state == ESTABLISHED || pcb->state == SYN_RCVD) pcb->state = FIN_WAIT_1;
  else if (pcb->state == CLOSE_WAIT) pcb->state = LAST_ACK;
  else return;
  tcp_enqueue_flags(pcb, TCP_FIN | TCP_ACK);
  tcp_output(pcb);
}

static struct tcp_pcb *tcp_connect(const ip4_addr_t *from, const ip4_addr_t *to, u16_t port) {
  struct tcp_pcb *pcb = tcp_alloc(64);
  if (!pcb) return NULL;
  pcb->local_ip.addr = from->addr;
  pcb->remote_ip.addr = to->addr;
  pcb->remote_port = port;
  pcb->local_port = tcp_port;
  if (++tcp_port == 0) tcp_port = 0xc000;
  pcb->snd_wnd = TCP_WND;
  pcb->cwnd = pcb->mss;
  pcb->state = SYN_SENT;
  TCP_REG(&tcp_active_pcbs, pcb);
  tcp_enqueue_flags(pcb, TCP_SYN);
  tcp_output(pcb);
  STATS_INC(opened);
  return pcb;
}

/* ---- TCP: input ---- */

static struct tcp_in { struct tcp_seg *seg; struct tcp_hdr *hdr; struct ip_hdr *ip; struct pbuf *data; u32_t seqno, ackno, acked; u16_t tcplen; u8_t flags; } in;

static NOINLINE struct tcp_seg *tcp_free_acked(struct tcp_pcb *pcb, struct tcp_seg *seg) {
  while (seg && TCP_SEQ_LEQ(lwip_ntohl(seg->tcphdr->seqno) + TCP_TCPLEN(seg), in.ackno)) {
    struct tcp_seg *next = seg->next;
    pcb->snd_queuelen--;
    in.acked += seg->len;
    tcp_seg_free(seg);
    seg = next;
  }
  return seg;
}

static NOINLINE void tcp_oos_insert(struct tcp_pcb *pcb, struct pbuf *p) {
  struct tcp_seg **link = &pcb->ooseq;
  unsigned held = 0;
  while (*link && TCP_SEQ_LT(lwip_ntohl((*link)->tcphdr->seqno), in.seqno)) { link = &(*link)->next; held++; }
  if (held > 6 || (*link && lwip_ntohl((*link)->tcphdr->seqno) == in.seqno)) return;
  struct tcp_seg *seg = (struct tcp_seg *)memp_malloc(MEMP_TCP_SEG);
  if (!seg) return;
  p->ref++;
  seg->p = p;
  seg->len = (u16_t)(in.tcplen - ((in.flags & (TCP_FIN | TCP_SYN)) ? 1 : 0));
  seg->flags = in.flags;
  seg->chksum = 0;
  seg->chksum_swapped = seg->rexmitted = 0;
  seg->tcphdr = in.hdr;
  seg->next = *link;
  *link = seg;
  STATS_INC(ooseq);
}

/* Data that is in order: to the application, and then what waited for it. */
static void tcp_deliver(struct tcp_pcb *pcb, struct pbuf *p, u16_t len, u8_t flags) {
  pcb->rcv_nxt += len + ((flags & TCP_FIN) ? 1 : 0);
  if (len && pcb->recv) {
    p->ref++;
    pcb->recv(pcb->callback_arg, pcb, p, ERR_OK);
  }
  if (flags & TCP_FIN) {
    if (pcb->state == ESTABLISHED) pcb->state = CLOSE_WAIT;
    else if (pcb->state == FIN_WAIT_2 || pcb->state == FIN_WAIT_1) pcb->state = TIME_WAIT;
    pcb->flags |= TF_ACK_NOW;
    if (pcb->recv) pcb->recv(pcb->callback_arg, pcb, NULL, ERR_OK);
  }
}

static NOINLINE void tcp_receive(struct tcp_pcb *pcb, struct pbuf *p) {
  if (in.flags & TCP_ACK) {
    u32_t right_wnd_edge = pcb->snd_wnd + pcb->snd_wl2;
    if (TCP_SEQ_LT(pcb->snd_wl1, in.seqno) || (pcb->snd_wl1 == in.seqno && TCP_SEQ_LEQ(pcb->snd_wl2, in.ackno))) {
      pcb->snd_wnd = lwip_ntohs(in.hdr->wnd);
      pcb->snd_wl1 = in.seqno;
      pcb->snd_wl2 = in.ackno;
    }
    if (TCP_SEQ_LEQ(in.ackno, pcb->lastack)) {
      if (in.tcplen == 0 && pcb->snd_wl2 + pcb->snd_wnd == right_wnd_edge && pcb->rtime >= 0 && pcb->lastack == in.ackno && pcb->unacked) {
        if (++pcb->dupacks == 3) {
          pcb->flags |= TF_INFR;
          pcb->ssthresh = LWIP_MAX(LWIP_MIN(pcb->cwnd, pcb->snd_wnd) / 2, 2u * pcb->mss);
          pcb->cwnd = pcb->ssthresh + 3u * pcb->mss;
          STATS_INC(fast_rexmit);
          tcp_rexmit(pcb);
        }
      }
    } else if (TCP_SEQ_BETWEEN(in.ackno, pcb->lastack + 1, pcb->snd_nxt)) {
      if (pcb->flags & TF_INFR) { pcb->flags &= (tcpflags_t)~TF_INFR; pcb->cwnd = pcb->ssthresh; }
      pcb->nrtx = 0;
      pcb->rto = (s16_t)((pcb->sa >> 3) + pcb->sv);
      pcb->dupacks = 0;
      u32_t acked = in.ackno - pcb->lastack;
      pcb->lastack = in.ackno;
      pcb->cwnd += pcb->cwnd < pcb->ssthresh ? LWIP_MIN(acked, pcb->mss) : (u32_t)pcb->mss * pcb->mss / pcb->cwnd;
      pcb->cwnd = LWIP_MIN(pcb->cwnd, 0xffffu);
      pcb->unacked = tcp_free_acked(pcb, pcb->unacked);
      pcb->unsent = tcp_free_acked(pcb, pcb->unsent);
      pcb->rtime = pcb->unacked ? 0 : -1;
      pcb->snd_buf += in.acked;
      if (pcb->rttest && TCP_SEQ_LT(pcb->rtseq, in.ackno)) {
        s16_t m = (s16_t)(tcp_ticks - pcb->rttest);
        m = (s16_t)(m - (pcb->sa >> 3));
        pcb->sa = (s16_t)(pcb->sa + m);
        if (m < 0) m = (s16_t)-m;
        m = (s16_t)(m - (pcb->sv >> 2));
        pcb->sv = (s16_t)LWIP_MAX(pcb->sv + m, 2);
        pcb->rto = (s16_t)((pcb->sa >> 3) + pcb->sv);
        pcb->rttest = 0;
      }
    }
  }
  if (in.tcplen == 0) return;
  if (in.seqno == pcb->rcv_nxt) {
    u16_t len = (u16_t)(in.tcplen - ((in.flags & (TCP_FIN | TCP_SYN)) ? 1 : 0));
    tcp_deliver(pcb, p, len, in.flags);
    struct tcp_seg *seg;
    while ((seg = pcb->ooseq) != NULL && TCP_SEQ_LEQ(lwip_ntohl(seg->tcphdr->seqno), pcb->rcv_nxt)) {
      pcb->ooseq = seg->next;
      if (lwip_ntohl(seg->tcphdr->seqno) == pcb->rcv_nxt) tcp_deliver(pcb, seg->p, seg->len, seg->flags);
      tcp_seg_free(seg);
    }
    if (pcb->flags & TF_ACK_DELAY) { pcb->flags &= (tcpflags_t)~TF_ACK_DELAY; pcb->flags |= TF_ACK_NOW; }
    else pcb->flags |= TF_ACK_DELAY;
  } else {
    if (TCP_SEQ_BETWEEN(in.seqno, pcb->rcv_nxt, pcb->rcv_nxt + pcb->rcv_wnd - 1)) tcp_oos_insert(pcb, p);
    tcp_send_empty_ack(pcb);
  }
}

static NOINLINE err_t tcp_process(struct tcp_pcb *pcb, struct pbuf *p) {
  switch (pcb->state) {
    case SYN_SENT:
      if ((in.flags & (TCP_SYN | TCP_ACK)) == (TCP_SYN | TCP_ACK) && in.ackno == pcb->snd_nxt) {
        pcb->rcv_nxt = in.seqno + 1;
        pcb->lastack = in.ackno;
        pcb->snd_wnd = lwip_ntohs(in.hdr->wnd);
        pcb->snd_wl1 = in.seqno - 1;
        pcb->state = ESTABLISHED;
        pcb->cwnd = 2u * pcb->mss;
        pcb->unacked = tcp_free_acked(pcb, pcb->unacked);
        pcb->rtime = pcb->unacked ? 0 : -1;
        pcb->nrtx = 0;
        pcb->flags |= TF_ACK_NOW;
        if (pcb->sent) pcb->sent(pcb->callback_arg, pcb, 0);
      }
      break;
    case SYN_RCVD:
      if ((in.flags & TCP_ACK) && TCP_SEQ_BETWEEN(in.ackno, pcb->lastack + 1, pcb->snd_nxt)) {
        pcb->state = ESTABLISHED;
        pcb->cwnd = 2u * pcb->mss;
        if (pcb->listener->accept(pcb->listener->callback_arg, pcb, ERR_OK) != ERR_OK) return ERR_CLSD;
        tcp_receive(pcb, p);
      } else if (in.flags & TCP_SYN) tcp_rexmit(pcb);
      break;
    case ESTABLISHED:
    case CLOSE_WAIT: tcp_receive(pcb, p); break;
    case FIN_WAIT_1:
      tcp_receive(pcb, p);
      if (pcb->state == FIN_WAIT_1 && (in.flags & TCP_ACK) && in.ackno == pcb->snd_nxt && !pcb->unsent) pcb->state = FIN_WAIT_2;
      break;
    case FIN_WAIT_2: tcp_receive(pcb, p); break;
    case LAST_ACK:
      tcp_receive(pcb, p);
      if ((in.flags & TCP_ACK) && in.ackno == pcb->snd_nxt && !pcb->unsent) return ERR_CLSD;
      break;
    default: break;
  }
  return ERR_OK;
}

static void tcp_listen_input(struct tcp_pcb_listen *lpcb) {
  struct tcp_pcb *npcb = tcp_alloc(64);
  if (!npcb) { STATS_INC(tcp.memerr); return; }
  npcb->local_ip.addr = in.ip->dest.addr;
  npcb->remote_ip.addr = in.ip->src.addr;
  npcb->local_port = lpcb->local_port;
  npcb->remote_port = lwip_ntohs(in.hdr->src);
  npcb->state = SYN_RCVD;
  npcb->rcv_nxt = in.seqno + 1;
  npcb->snd_wnd = lwip_ntohs(in.hdr->wnd);
  npcb->cwnd = npcb->mss;
  npcb->snd_wl1 = in.seqno - 1;
  npcb->listener = lpcb;
  npcb->callback_arg = lpcb->callback_arg;
  TCP_REG(&tcp_active_pcbs, npcb);
  tcp_enqueue_flags(npcb, TCP_SYN | TCP_ACK);
  tcp_output(npcb);
}

static NOINLINE struct tcp_pcb *tcp_find(void) {
  struct tcp_pcb *pcb, *prev = NULL;
  u16_t src = lwip_ntohs(in.hdr->src), dest = lwip_ntohs(in.hdr->dest);
  for (pcb = tcp_active_pcbs; pcb != NULL; prev = pcb, pcb = pcb->next)
    if (pcb->remote_port == src && pcb->local_port == dest && pcb->remote_ip.addr == in.ip->src.addr && pcb->local_ip.addr == in.ip->dest.addr) {
      if (prev != NULL) { /* to the front: what comes next is likely for it, too */
        prev->next = pcb->next;
        TCP_REG(&tcp_active_pcbs, pcb);
      } else STATS_INC(tcp.cachehit);
      return pcb;
    }
  return NULL;
}

static NOINLINE void tcp_input(struct pbuf *p, struct ip_hdr *iphdr) {
  STATS_INC(tcp.recv);
  struct tcp_hdr *h = (struct tcp_hdr *)p->payload;
  in.hdr = h;
  in.ip = iphdr;
  in.acked = 0;
  u16_t len = p->tot_len, datalen = (u16_t)(len - TCP_HLEN);
  pbuf_header(p, -TCP_HLEN);
  if (tcp_hdr_chksum(h, &iphdr->src, &iphdr->dest, len, lwip_standard_chksum((const u8_t *)p->payload, datalen)) != lwip_ntohs(h->chksum)) {
    STATS_INC(tcp.chkerr);
    pbuf_free(p);
    return;
  }
  in.seqno = lwip_ntohl(h->seqno);
  in.ackno = lwip_ntohl(h->ackno);
  in.flags = lwip_ntohs(h->_hdrlen_rsvd_flags) & 0x3f;
  in.tcplen = (u16_t)(datalen + ((in.flags & (TCP_FIN | TCP_SYN)) ? 1 : 0));
  struct tcp_pcb *pcb = tcp_find();
  if (pcb) {
    if (tcp_process(pcb, p) == ERR_CLSD) tcp_free_closed(&tcp_active_pcbs, pcb, ERR_OK);
    else {
      if (in.acked > 0 && pcb->sent) pcb->sent(pcb->callback_arg, pcb, (u16_t)in.acked);
      tcp_output(pcb);
      if (pcb->state == TIME_WAIT) {
        if (pcb->flags & TF_ACK_NOW) tcp_send_empty_ack(pcb);
        if (pcb->errf) pcb->errf(pcb->callback_arg, ERR_OK);
        tcp_rmv(&tcp_active_pcbs, pcb);
        pcb->tmr = tcp_ticks;
        TCP_REG(&tcp_tw_pcbs, pcb);
      }
    }
  } else {
    for (pcb = tcp_tw_pcbs; pcb; pcb = pcb->next)
      if (pcb->remote_port == lwip_ntohs(h->src) && pcb->local_port == lwip_ntohs(h->dest)) break;
    if (pcb) { if (in.tcplen) tcp_send_empty_ack(pcb); }
    else if (in.flags & TCP_SYN) {
      for (struct tcp_pcb_listen *l = tcp_listen_pcbs; l; l = l->next)
        if (l->local_port == lwip_ntohs(h->dest)) { tcp_listen_input(l); break; }
    } else STATS_INC(tcp.drop);
  }
  pbuf_free(p);
}

/* ---- UDP ---- */

static struct udp_pcb *udp_pcbs;

static void udp_sendto(struct udp_pcb *pcb, struct pbuf *p, const ip4_addr_t *to, u16_t port) {
  u16_t data = lwip_standard_chksum((const u8_t *)p->payload, p->len);
  pbuf_header(p, UDP_HLEN);
  struct udp_hdr *h = (struct udp_hdr *)p->payload;
  h->src = lwip_htons(pcb->local_port);
  h->dest = lwip_htons(port);
  h->len = lwip_htons(p->tot_len);
  h->chksum = lwip_htons(data);
  STATS_INC(udp.xmit);
  struct netif *netif = ip4_route(to);
  if (netif) ip4_output_if(p, &pcb->local_ip, to, pcb->ttl, IP_PROTO_UDP, netif);
}

static NOINLINE void udp_input(struct pbuf *p, struct ip_hdr *iphdr) {
  struct udp_hdr *h = (struct udp_hdr *)p->payload;
  u16_t dest = lwip_ntohs(h->dest), src = lwip_ntohs(h->src);
  pbuf_header(p, -UDP_HLEN);
  STATS_INC(udp.recv);
  if (lwip_standard_chksum((const u8_t *)p->payload, p->len) != lwip_ntohs(h->chksum)) STATS_INC(udp.chkerr);
  for (struct udp_pcb *pcb = udp_pcbs; pcb; pcb = pcb->next)
    if (pcb->local_port == dest) {
      if (pcb->recv) pcb->recv(pcb->recv_arg, pcb, p, &iphdr->src, src);
      break;
    }
  pbuf_free(p);
}

static err_t ip4_input(struct pbuf *p, struct netif *inp) {
  struct ip_hdr *iphdr = (struct ip_hdr *)p->payload;
  STATS_INC(ip.recv);
  if (iphdr->_v_hl != 0x45 || ip_hdr_chksum(iphdr) != lwip_ntohs(iphdr->_chksum)) { STATS_INC(ip.chkerr); return ERR_VAL; }
  if (iphdr->dest.addr != inp->ip_addr.addr) { STATS_INC(ip.drop); return ERR_VAL; }
  pbuf_header(p, -IP_HLEN);
  if (iphdr->_proto == IP_PROTO_TCP) tcp_input(p, iphdr);
  else udp_input(p, iphdr);
  return ERR_OK;
}

/* ---- the application: clients that send and a server that answers ---- */

struct app_state { struct tcp_pcb *pcb; u32_t id, left, received, sum; u8_t open, server; u16_t pending; u8_t *page; struct app_state *link; };
struct name_query { u32_t asked, answered, hits[16]; };
static struct app_state *clients;
static u8_t *pages;
static struct name_query queries;
static u32_t app_sessions, app_mismatch;

static u32_t app_eat(struct app_state *st, struct pbuf *p) {
  const u8_t *b = (const u8_t *)p->payload;
  u32_t sum = st->sum;
  u16_t n = p->type_internal == MEMP_PBUF_TCP && b < (u8_t *)p + sizeof(struct pbuf) + IP_HLEN + TCP_HLEN ? 0 : p->len;
  for (u16_t i = 0; i < n; i++) sum = (sum << 3 | sum >> 29) ^ b[i];
  st->sum = sum;
  st->received += n;
  return n;
}

static void app_push(struct app_state *st) {
  struct tcp_pcb *pcb = st->pcb;
  while (st->left > 0) {
    u16_t n = (u16_t)LWIP_MIN(st->left, LWIP_MIN(pcb->snd_buf, 2u * TCP_MSS));
    if (n == 0 || tcp_write(pcb, st->page + st->left % 997, n) != ERR_OK) break;
    st->left -= n;
  }
  if (st->left == 0 && pcb->state == ESTABLISHED && !st->server && st->received >= 900) tcp_close(pcb);
}

static err_t app_sent(void *arg, struct tcp_pcb *tpcb, u16_t len) {
  struct app_state *st = (struct app_state *)arg;
  (void)tpcb, (void)len;
  app_push(st);
  return ERR_OK;
}

static err_t client_recv(void *arg, struct tcp_pcb *tpcb, struct pbuf *p, err_t err) {
  struct app_state *st = (struct app_state *)arg;
  if (!p) { tcp_close(tpcb); return err; }
  app_eat(st, p);
  pbuf_free(p);
  app_push(st);
  return ERR_OK;
}

static err_t server_recv(void *arg, struct tcp_pcb *tpcb, struct pbuf *p, err_t err) {
  struct app_state *st = (struct app_state *)arg;
  if (!p) { tcp_close(tpcb); return err; }
  st->pending = (u16_t)(st->pending + app_eat(st, p));
  pbuf_free(p);
  if (st->pending >= 800) { st->left += 900; st->pending = 0; }
  app_push(st);
  return ERR_OK;
}

static void app_err(void *arg, err_t err) {
  struct app_state *st = (struct app_state *)arg;
  if (st->server) { st->open = 0; HEAP_FREE(st); }
  else { st->open = 0; app_mismatch += err != ERR_OK; }
}

static err_t app_poll(void *arg, struct tcp_pcb *tpcb) {
  struct app_state *st = (struct app_state *)arg;
  if (tpcb->state == ESTABLISHED) app_push(st);
  return ERR_OK;
}

static err_t server_accept(void *arg, struct tcp_pcb *newpcb, err_t err) {
  struct app_state *st = HEAP_CALLOC(struct app_state, 1);
  (void)arg;
  st->pcb = newpcb;
  st->server = st->open = 1;
  st->id = newpcb->remote_port;
  st->page = pages + (newpcb->remote_port & 255) * 1024;
  newpcb->callback_arg = st;
  newpcb->recv = server_recv;
  newpcb->sent = app_sent;
  newpcb->errf = app_err;
  newpcb->poll = app_poll;
  newpcb->pollinterval = 6;
  newpcb->listener->accepted++;
  return err;
}

static NOINLINE void app_open(struct app_state *st, u32_t id) {
  struct tcp_pcb *pcb = tcp_connect(&netifs[id & 2].ip_addr, &netifs[(id & 2) + 1].ip_addr, (u16_t)(80 + id % 4));
  if (!pcb) return;
  st->pcb = pcb;
  st->id = id;
  st->open = 1;
  st->received = 0;
  st->left = 900 + (u32_t)(tr_rand() >> 22) % 9000;
  pcb->callback_arg = st;
  pcb->recv = client_recv;
  pcb->sent = app_sent;
  pcb->errf = app_err;
  pcb->poll = app_poll;
  pcb->pollinterval = 4;
  app_sessions++;
}

static void name_recv(void *arg, struct udp_pcb *pcb, struct pbuf *p, const ip4_addr_t *addr, u16_t port) {
  struct name_query *q = (struct name_query *)arg;
  const u8_t *b = (const u8_t *)p->payload;
  u32_t hash = 0;
  for (u16_t i = 0; i < p->len; i++) hash = hash * 31 + b[i];
  q->hits[hash & 15]++;
  if (pcb->local_port < 1000) {
    struct pbuf *r = pbuf_alloc(MEMP_PBUF_UDP, 64);
    if (!r) return;
    u8_t *out = (u8_t *)r->payload;
    for (int i = 0; i < 64; i++) out[i] = (u8_t)(hash >> (i & 7)) ^ b[i & 31];
    q->answered++;
    udp_sendto(pcb, r, addr, port);
    pbuf_free(r);
  }
}

static NOINLINE void ask_names(u32_t n) {
  for (struct udp_pcb *pcb = udp_pcbs; pcb && n; pcb = pcb->next) {
    if (pcb->local_port < 1000 || (tr_rand() >> 33 & 3)) continue;
    struct pbuf *p = pbuf_alloc(MEMP_PBUF_UDP, 32 + (u16_t)(n & 31));
    if (!p) return;
    u8_t *out = (u8_t *)p->payload;
    for (u16_t i = 0; i < p->len; i++) out[i] = (u8_t)('a' + (pcb->local_port * i + lwip_now) % 26);
    queries.asked++;
    udp_sendto(pcb, p, &netifs[1].ip_addr, 53);
    pbuf_free(p);
    n--;
  }
}

int main(int argc, char **argv) {
  tr_init(argc, argv);
  TR_GLOBAL(lwip_stats, "struct stats_");
  TR_GLOBAL(memp_stats, "struct stats_mem []");
  TR_GLOBAL(memp_tab, "struct memp *[]");
  TR_GLOBAL(memp_pools, "struct memp_desc []");
  TR_GLOBAL(arp_table, "struct etharp_entry []");
  TR_GLOBAL(etharp_cached_entry, "unsigned char");
  TR_GLOBAL(netifs, "struct netif []");
  TR_GLOBAL(netif_list, "struct netif *");
  TR_GLOBAL(lwip_now, "unsigned int");
  TR_GLOBAL(ip_id, "unsigned short");
  TR_GLOBAL(tcp_active_pcbs, "struct tcp_pcb *");
  TR_GLOBAL(tcp_tw_pcbs, "struct tcp_pcb *");
  TR_GLOBAL(tcp_ticks, "unsigned int");
  TR_GLOBAL(next_timeout, "struct sys_timeo *");
  TR_GLOBAL(in, "struct tcp_in");
  TR_GLOBAL(queries, "struct name_query");
  TR_GLOBAL(udp_pcbs, "struct udp_pcb *");
  TR_CHECK(struct tcp_pcb, ooseq);
  TR_CHECK(struct pbuf, ref);
  TR_CHECK(struct tcp_hdr, wnd);
  memp_init();
  for (int i = 0; i < 4; i++) {
    struct netif *n = &netifs[i];
    n->ip_addr.addr = lwip_htonl(0x0a000001u + ((u32_t)i << 8));
    n->netmask.addr = lwip_htonl(0xffffff00u);
    n->input = ip4_input;
    n->linkoutput = wire_linkoutput;
    n->peer = &netifs[i ^ 1];
    n->flags = 1;
    n->num = (u8_t)(i + 1);
    n->loss = i < 2 ? 4 : 15;
    n->next = netif_list;
    netif_list = n;
    for (int k = 0; k < 6; k++) n->hwaddr[k] = (u8_t)(2 + 16 * i + k);
    struct tcp_pcb_listen *l = (struct tcp_pcb_listen *)memp_malloc(MEMP_TCP_PCB_LISTEN);
    memset(l, 0, sizeof *l);
    l->local_port = (u16_t)(80 + i);
    l->accept = server_accept;
    l->next = tcp_listen_pcbs;
    tcp_listen_pcbs = l;
  }
  for (int i = 0; i < 20; i++) {
    struct udp_pcb *u = (struct udp_pcb *)memp_malloc(MEMP_UDP_PCB);
    memset(u, 0, sizeof *u);
    u->local_ip.addr = netifs[i == 0].ip_addr.addr;
    u->local_port = (u16_t)(i == 0 ? 53 : 5000 + i);
    u->ttl = 64;
    u->recv = name_recv;
    u->recv_arg = &queries;
    u->next = udp_pcbs;
    udp_pcbs = u;
  }
  pages = HEAP_CALLOC(unsigned char, 260 * 1024);
  for (int i = 0; i < 260 * 1024; i++) pages[i] = (u8_t)(tr_rand() >> 24);
  clients = HEAP_CALLOC(struct app_state, CONNECTIONS);
  for (int i = 0; i < CONNECTIONS; i++) clients[i].page = pages + i * 1024;
  for (size_t i = 0; i < sizeof lwip_cyclic_timers / sizeof *lwip_cyclic_timers; i++)
    sys_timeout(lwip_cyclic_timers[i].interval_ms, lwip_cyclic_timer, &lwip_cyclic_timers[i]);
  while (tr_more()) {
    for (int step = 0; step < 10; step++) {
      lwip_now++;
      for (struct netif *n = netif_list; n; n = n->next) netif_poll(n);
      sys_check_timeouts();
    }
    for (int i = 0; i < 3; i++) {
      struct app_state *st = &clients[(tr_rand() >> 20) % CONNECTIONS];
      if (!st->open) app_open(st, (u32_t)(st - clients));
    }
    ask_names(3);
  }
  if (getenv("SHOW"))
    fprintf(stderr, "sessions %u closed %u rexmit %u fast %u ooseq %u errs %u tcp xmit %u recv %u chkerr %u udp %u now %u memerr %u; used pcb %u seg %u pbuf %u\n", app_sessions, lwip_stats.closed, lwip_stats.rexmit,
            lwip_stats.fast_rexmit, lwip_stats.ooseq, app_mismatch, lwip_stats.tcp.xmit, lwip_stats.tcp.recv, lwip_stats.tcp.chkerr, lwip_stats.udp.recv, lwip_now, lwip_stats.link.memerr, memp_stats[0].used, memp_stats[2].used, memp_stats[5].used);
  tr_sink = lwip_stats.tcp.recv + app_sessions;
  return 0;
}
