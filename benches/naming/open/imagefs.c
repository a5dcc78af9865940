// SPDX-License-Identifier: MIT
/*
 * A filesystem in an image that is mapped into memory: zones for inodes, directories, indirect blocks
 * and data, bitmaps, buffer heads on a hash and an LRU list, caches of inodes and names, a journal of
 * what is changed, a checker that walks everything.
 */
#include "../heap.h"

typedef uint8_t u8;
typedef uint16_t le16;
typedef uint32_t le32;
typedef uint64_t u64;
typedef uint32_t blk_t;
typedef uint32_t ino_t32;

#define BLOCK		1024u
#define INODES		512u
#define DIRECT		8
#define PER_INDIRECT	(BLOCK / sizeof(le32))
#define PER_DIR		(BLOCK / sizeof(struct disk_dirent))
#define JOURNAL_TAGS	256u
#define BH_HASH		256u
#define BH_MAX		600u
#define ICACHE_HASH	256u
#define ICACHE_MAX	320u
#define DCACHE_HASH	256u
#define NAME_LEN	23
#define ROOT_INO	1u

#define S_DIR	0x4000
#define S_REG	0x8000
#define S_LNK	0xa000
#define S_KIND	0xf000

#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))

struct list_head { struct list_head *next, *prev; };

static inline void list_init(struct list_head *l) { l->next = l->prev = l; }
static inline int list_empty(const struct list_head *l) { return l->next == l; }
static inline void list_del(struct list_head *l)
{
	l->next->prev = l->prev;
	l->prev->next = l->next;
	list_init(l);
}
static inline void list_add(struct list_head *l, struct list_head *at)
{
	l->next = at->next;
	l->prev = at;
	at->next->prev = l;
	at->next = l;
}
#define list_for_each_entry(p, head, member)					\
	for (p = container_of((head)->next, __typeof__(*p), member);		\
	     &p->member != (head); p = container_of(p->member.next, __typeof__(*p), member))

enum zone_kind { Z_SUPER, Z_BITMAP, Z_INODES, Z_DIRS, Z_INDIRECT, Z_DATA, ZONES };

/* ---- on disk ---- */

struct disk_zone {
	le32 start, count;
	le32 free;
	le32 rotor;
};

struct disk_super {
	le32 magic;
	le16 version, state;
	le32 free_inodes, mounts;
	u8 uuid[16];
	struct disk_zone zones[ZONES];
	struct {
		le32 sequence, head;
	} journal;
};

struct disk_inode {
	le16 mode, links;
	le32 size, blocks;
	le32 mtime, ctime;
	le32 generation;
	union {
		struct {
			le32 direct[DIRECT];
			le32 indirect;
		};
		char target[40];
	} u;
};

struct disk_dirent {
	le32 ino;
	le32 hash;
	u8 kind, len;
	char name[NAME_LEN - 1];
};

/* ---- in memory ---- */

struct buffer_head {
	struct buffer_head *hash_next;
	struct list_head lru;
	blk_t block;
	u8 zone;
	u8 dirty : 1, journaled : 1, referenced : 1;
	int count;
	void *data;
};

struct inode;

struct inode_ops {
	int (*lookup)(struct inode *dir, const char *name, u8 len, ino_t32 *found);
	long (*read)(struct inode *in, le32 pos, u8 *to, le32 n);
	long (*write)(struct inode *in, le32 pos, const u8 *from, le32 n);
	void (*release)(struct inode *in);
};

struct inode {
	struct list_head lru, dirty;
	struct inode *hash_next;
	ino_t32 ino;
	int count;
	struct buffer_head *bh;
	struct disk_inode *raw;
	const struct inode_ops *ops;
	union {
		struct { le32 last_index; blk_t last_block; } file;
		struct { le32 entries, hint; } dir;
	} i;
};

struct dentry {
	struct dentry *hash_next;
	struct dentry *lru_newer, *lru_older;
	ino_t32 parent, ino;
	le32 hash;
	u8 len, negative;
	char name[];
};

struct journal_tag {
	blk_t block;
	le32 sequence;
	le16 flags;
	u8 zone, pad;
};

struct file {
	struct inode *inode;
	le32 pos;
	struct { le32 start, size; unsigned hits; } ra;
};

struct fs {
	u8 *image;
	struct disk_super *super;
	u64 *bitmaps[ZONES];
	struct buffer_head *bh_hash[BH_HASH];
	struct list_head bh_lru;
	unsigned bh_count;
	struct {
		struct inode *hash[ICACHE_HASH];
		struct list_head lru, dirty;
		unsigned count;
	} icache;
	struct {
		struct dentry *hash[DCACHE_HASH];
		struct dentry *newest, *oldest;
		unsigned count;
	} dcache;
	struct journal_tag *journal;
	le32 clock;
};

static struct fs fs;
static struct file *files[24];
static struct fs_stats {
	u64 bh_hits, bh_misses, icache_hits, icache_misses, dcache_hits, dcache_misses;
	u64 read, written, created, removed, commits, errors;
} fs_stats;

static const struct inode_ops dir_ops, file_ops, link_ops;

/* ---- buffers ---- */

static NOINLINE struct buffer_head *bread(blk_t block, u8 zone)
{
	struct buffer_head **link = &fs.bh_hash[block % BH_HASH], *bh;

	for (bh = *link; bh; bh = bh->hash_next)
		if (bh->block == block) {
			bh->count++;
			bh->referenced = 1;
			fs_stats.bh_hits++;
			return bh;
		}
	fs_stats.bh_misses++;
	if (fs.bh_count < BH_MAX) {
		bh = HEAP_CALLOC(struct buffer_head, 1);
		fs.bh_count++;
	} else {
		struct list_head *l = fs.bh_lru.prev;
		struct buffer_head **old;

		for (;; l = fs.bh_lru.prev) {
			bh = container_of(l, struct buffer_head, lru);
			if (!bh->count && !bh->referenced && !bh->journaled)
				break;
			bh->referenced = 0;
			list_del(l);
			list_add(l, &fs.bh_lru);
		}
		list_del(&bh->lru);
		for (old = &fs.bh_hash[bh->block % BH_HASH]; *old != bh; old = &(*old)->hash_next)
			;
		*old = bh->hash_next;
	}
	bh->block = block;
	bh->zone = zone;
	bh->dirty = bh->journaled = bh->referenced = 0;
	bh->count = 1;
	bh->data = fs.image + (size_t)block * BLOCK;
	bh->hash_next = fs.bh_hash[block % BH_HASH];
	fs.bh_hash[block % BH_HASH] = bh;
	list_add(&bh->lru, &fs.bh_lru);
	return bh;
}

static inline void brelse(struct buffer_head *bh) { bh->count--; }

static void journal_commit(void)
{
	struct journal_tag *tag;
	le32 i, n = fs.super->journal.head;

	for (i = 0; i < n; i++) {
		struct buffer_head *bh;

		tag = &fs.journal[i];
		for (bh = fs.bh_hash[tag->block % BH_HASH]; bh && bh->block != tag->block; bh = bh->hash_next)
			;
		if (bh)
			bh->dirty = bh->journaled = 0;
		tag->flags |= 1;
	}
	fs.super->journal.head = 0;
	fs.super->journal.sequence++;
	fs_stats.commits++;
}

static NOINLINE void mark_dirty(struct buffer_head *bh)
{
	struct journal_tag *tag;

	bh->dirty = 1;
	if (bh->journaled || bh->zone == Z_DATA)
		return;
	if (fs.super->journal.head == JOURNAL_TAGS)
		journal_commit();
	tag = &fs.journal[fs.super->journal.head++];
	tag->block = bh->block;
	tag->sequence = fs.super->journal.sequence;
	tag->zone = bh->zone;
	tag->flags = 0;
	bh->journaled = 1;
}

/* ---- allocation ---- */

static NOINLINE blk_t alloc_block(u8 zone)
{
	struct disk_zone *z = &fs.super->zones[zone];
	u64 *map = fs.bitmaps[zone];
	le32 words = z->count / 64, i;

	if (!z->free)
		return 0;
	for (i = 0; i < words; i++) {
		le32 w = (z->rotor + i) % words, bit;

		if (map[w] == ~0ull)
			continue;
		bit = (le32)__builtin_ctzll(~map[w]);
		map[w] |= 1ull << bit;
		z->rotor = w;
		z->free--;
		return z->start + w * 64 + bit;
	}
	return 0;
}

static void free_block(u8 zone, blk_t block)
{
	struct disk_zone *z = &fs.super->zones[zone];
	le32 at = block - z->start;

	fs.bitmaps[zone][at / 64] &= ~(1ull << (at & 63));
	z->free++;
}

static ino_t32 alloc_inode(void)
{
	u64 *map = fs.bitmaps[Z_INODES];
	le32 w;

	for (w = 0; w < INODES / 64; w++)
		if (map[w] != ~0ull) {
			le32 bit = (le32)__builtin_ctzll(~map[w]);
			map[w] |= 1ull << bit;
			fs.super->free_inodes--;
			return w * 64 + bit;
		}
	return 0;
}

/* ---- inodes ---- */

static NOINLINE struct inode *iget(ino_t32 ino)
{
	struct inode **link = &fs.icache.hash[ino % ICACHE_HASH], *in;
	le32 per = BLOCK / sizeof(struct disk_inode);

	for (in = *link; in; in = in->hash_next)
		if (in->ino == ino) {
			in->count++;
			fs_stats.icache_hits++;
			list_del(&in->lru);
			list_add(&in->lru, &fs.icache.lru);
			return in;
		}
	fs_stats.icache_misses++;
	in = NULL;
	if (fs.icache.count >= ICACHE_MAX) {
		struct inode **old;
		unsigned tries;

		for (tries = 0; tries < 32; tries++) {
			in = container_of(fs.icache.lru.prev, struct inode, lru);
			if (!in->count)
				break;
			list_del(&in->lru);
			list_add(&in->lru, &fs.icache.lru);
			in = NULL;
		}
		if (in) {
			for (old = &fs.icache.hash[in->ino % ICACHE_HASH]; *old != in; old = &(*old)->hash_next)
				;
			*old = in->hash_next;
			list_del(&in->lru);
			list_del(&in->dirty);
			brelse(in->bh);
		}
	}
	if (!in) {
		in = HEAP_CALLOC(struct inode, 1);
		list_init(&in->dirty);
		fs.icache.count++;
	}
	in->ino = ino;
	in->count = 1;
	in->bh = bread(fs.super->zones[Z_INODES].start + ino / per, Z_INODES);
	in->raw = (struct disk_inode *)in->bh->data + ino % per;
	memset(&in->i, 0, sizeof(in->i));
	in->ops = (in->raw->mode & S_KIND) == S_DIR ? &dir_ops : (in->raw->mode & S_KIND) == S_LNK ? &link_ops : &file_ops;
	in->hash_next = *link;
	*link = in;
	list_add(&in->lru, &fs.icache.lru);
	return in;
}

static inline void iput(struct inode *in) { in->count--; }

static void inode_dirty(struct inode *in)
{
	in->raw->mtime = fs.clock;
	if (list_empty(&in->dirty))
		list_add(&in->dirty, &fs.icache.dirty);
	mark_dirty(in->bh);
}

static NOINLINE blk_t bmap(struct inode *in, le32 index, int create)
{
	struct disk_inode *raw = in->raw;
	u8 zone = (raw->mode & S_KIND) == S_DIR ? Z_DIRS : Z_DATA;
	struct buffer_head *bh;
	le32 *slot;
	blk_t block;

	if (index < DIRECT) {
		if (!raw->u.direct[index] && create && (raw->u.direct[index] = alloc_block(zone))) {
			raw->blocks++;
			inode_dirty(in);
		}
		return raw->u.direct[index];
	}
	if (index - DIRECT >= PER_INDIRECT)
		return 0;
	if (!raw->u.indirect) {
		if (!create || !(raw->u.indirect = alloc_block(Z_INDIRECT)))
			return 0;
		bh = bread(raw->u.indirect, Z_INDIRECT);
		memset(bh->data, 0, BLOCK);
		brelse(bh);
	}
	bh = bread(raw->u.indirect, Z_INDIRECT);
	slot = (le32 *)bh->data + (index - DIRECT);
	if (!*slot && create && (*slot = alloc_block(zone))) {
		raw->blocks++;
		mark_dirty(bh);
	}
	block = *slot;
	brelse(bh);
	return block;
}

static NOINLINE void truncate(struct inode *in)
{
	struct disk_inode *raw = in->raw;
	u8 zone = (raw->mode & S_KIND) == S_DIR ? Z_DIRS : Z_DATA;
	le32 i;

	for (i = 0; i < DIRECT; i++)
		if (raw->u.direct[i]) {
			free_block(zone, raw->u.direct[i]);
			raw->u.direct[i] = 0;
		}
	if (raw->u.indirect) {
		struct buffer_head *bh = bread(raw->u.indirect, Z_INDIRECT);
		const le32 *slots = bh->data;

		for (i = 0; i < PER_INDIRECT && slots[i]; i++)
			free_block(zone, slots[i]);
		brelse(bh);
		free_block(Z_INDIRECT, raw->u.indirect);
		raw->u.indirect = 0;
	}
	raw->size = raw->blocks = 0;
	in->i.file.last_block = 0;
}

/* ---- files ---- */

static blk_t file_block(struct inode *in, le32 index, int create)
{
	if (in->i.file.last_block && in->i.file.last_index == index)
		return in->i.file.last_block;
	in->i.file.last_index = index;
	return in->i.file.last_block = bmap(in, index, create);
}

static long file_read(struct inode *in, le32 pos, u8 *to, le32 n)
{
	le32 done = 0;

	while (done < n && pos + done < in->raw->size) {
		le32 at = (pos + done) % BLOCK, k, part = BLOCK - at < n - done ? BLOCK - at : n - done;
		blk_t block = file_block(in, (pos + done) / BLOCK, 0);
		struct buffer_head *bh;
		const u8 *from;

		if (!block)
			break;
		bh = bread(block, Z_DATA);
		from = (const u8 *)bh->data + at;
		for (k = 0; k < part; k += 4)
			to[done + k] = from[k];
		brelse(bh);
		done += part;
	}
	fs_stats.read += done;
	return done;
}

static long file_write(struct inode *in, le32 pos, const u8 *from, le32 n)
{
	le32 done = 0;

	while (done < n) {
		le32 at = (pos + done) % BLOCK, k, part = BLOCK - at < n - done ? BLOCK - at : n - done;
		blk_t block = file_block(in, (pos + done) / BLOCK, 1);
		struct buffer_head *bh;
		u8 *to;

		if (!block)
			break;
		bh = bread(block, Z_DATA);
		to = (u8 *)bh->data + at;
		for (k = 0; k < part; k += 2)
			to[k] = from[done + k];
		mark_dirty(bh);
		brelse(bh);
		done += part;
	}
	if (pos + done > in->raw->size)
		in->raw->size = pos + done;
	inode_dirty(in);
	fs_stats.written += done;
	return done;
}

static void file_release(struct inode *in) { truncate(in); }

static long link_read(struct inode *in, le32 pos, u8 *to, le32 n)
{
	le32 i;

	for (i = 0; i < n && in->raw->u.target[pos + i]; i++)
		to[i] = (u8)in->raw->u.target[pos + i];
	return i;
}

static void link_release(struct inode *in) { in->raw->size = 0; }

/* ---- directories ---- */

static le32 name_hash(const char *name, u8 len)
{
	le32 h = 0;
	u8 i;

	for (i = 0; i < len; i++)
		h = (h << 5 | h >> 27) ^ (u8)name[i];
	return h;
}

static NOINLINE struct disk_dirent *dir_find(struct inode *dir, const char *name, u8 len, struct buffer_head **out)
{
	le32 hash = name_hash(name, len), b, n = dir->raw->size / BLOCK, i;

	for (b = 0; b < n; b++) {
		struct buffer_head *bh = bread(bmap(dir, (dir->i.dir.hint + b) % n, 0), Z_DIRS);
		struct disk_dirent *d = bh->data;

		for (i = 0; i < PER_DIR; i++, d++)
			if (d->hash == hash && d->ino && d->len == len && !memcmp(d->name, name, len)) {
				dir->i.dir.hint = (dir->i.dir.hint + b) % n;
				*out = bh;
				return d;
			}
		brelse(bh);
	}
	return NULL;
}

static int dir_lookup(struct inode *dir, const char *name, u8 len, ino_t32 *found)
{
	struct buffer_head *bh;
	const struct disk_dirent *d = dir_find(dir, name, len, &bh);

	if (!d)
		return -1;
	*found = d->ino;
	brelse(bh);
	return 0;
}

static NOINLINE int dir_add(struct inode *dir, const char *name, u8 len, ino_t32 ino, le16 mode)
{
	le32 b, i;

	for (b = 0;; b++) {
		blk_t block = bmap(dir, b, 1);
		struct buffer_head *bh;
		struct disk_dirent *d;

		if (!block)
			return -1;
		bh = bread(block, Z_DIRS);
		d = bh->data;
		if (b * BLOCK >= dir->raw->size) {
			memset(bh->data, 0, BLOCK);
			dir->raw->size = (b + 1) * BLOCK;
		}
		for (i = 0; i < PER_DIR; i++, d++) {
			if (d->ino)
				continue;
			d->ino = ino;
			d->hash = name_hash(name, len);
			d->kind = (u8)(mode >> 12);
			d->len = len;
			memcpy(d->name, name, len);
			mark_dirty(bh);
			brelse(bh);
			inode_dirty(dir);
			dir->i.dir.entries++;
			return 0;
		}
		brelse(bh);
	}
}

static const struct inode_ops dir_ops = { dir_lookup, NULL, NULL, file_release };
static const struct inode_ops file_ops = { NULL, file_read, file_write, file_release };
static const struct inode_ops link_ops = { NULL, link_read, NULL, link_release };

/* ---- names ---- */

static void d_unlink_lru(struct dentry *d)
{
	*(d->lru_newer ? &d->lru_newer->lru_older : &fs.dcache.newest) = d->lru_older;
	*(d->lru_older ? &d->lru_older->lru_newer : &fs.dcache.oldest) = d->lru_newer;
}

static void d_newest(struct dentry *d)
{
	d->lru_newer = NULL;
	d->lru_older = fs.dcache.newest;
	*(d->lru_older ? &d->lru_older->lru_newer : &fs.dcache.oldest) = d;
	fs.dcache.newest = d;
}

static void d_drop(struct dentry *d)
{
	struct dentry **link = &fs.dcache.hash[(d->hash ^ d->parent) % DCACHE_HASH];

	while (*link != d)
		link = &(*link)->hash_next;
	*link = d->hash_next;
	d_unlink_lru(d);
	fs.dcache.count--;
	HEAP_FREE(d);
}

static struct dentry *d_find(ino_t32 parent, const char *name, u8 len)
{
	le32 hash = name_hash(name, len);
	struct dentry *d = fs.dcache.hash[(hash ^ parent) % DCACHE_HASH];

	while (d && !(d->hash == hash && d->parent == parent && d->len == len && !memcmp(d->name, name, len)))
		d = d->hash_next;
	return d;
}

static NOINLINE ino_t32 d_lookup(struct inode *dir, const char *name, u8 len)
{
	struct dentry *d = d_find(dir->ino, name, len);
	ino_t32 found = 0;

	if (d) {
		fs_stats.dcache_hits++;
		if (fs.dcache.newest != d) {
			d_unlink_lru(d);
			d_newest(d);
		}
		return d->negative ? 0 : d->ino;
	}
	fs_stats.dcache_misses++;
	if (fs.dcache.count > 160)
		d_drop(fs.dcache.oldest);
	d = HEAP_FLEXIBLE(struct dentry, sizeof(*d) + ((len + 8u) & ~7u));
	d->hash = name_hash(name, len);
	d->parent = dir->ino;
	d->negative = dir->ops->lookup(dir, name, len, &found) != 0;
	d->ino = found;
	d->len = len;
	memcpy(d->name, name, len);
	d->hash_next = fs.dcache.hash[(d->hash ^ d->parent) % DCACHE_HASH];
	fs.dcache.hash[(d->hash ^ d->parent) % DCACHE_HASH] = d;
	d_newest(d);
	fs.dcache.count++;
	return found;
}

/* Walks to the directory that holds the last part of the path, which is left in `last`. */
static NOINLINE struct inode *walk(const char *path, const char **last, u8 *len)
{
	struct inode *dir = iget(ROOT_INO);

	for (;;) {
		const char *end = path;
		ino_t32 next;

		while (*end && *end != '/')
			end++;
		*last = path;
		*len = (u8)(end - path);
		if (!*end)
			return dir;
		next = d_lookup(dir, path, *len);
		iput(dir);
		if (!next)
			return NULL;
		dir = iget(next);
		if (!dir->ops->lookup) {
			iput(dir);
			return NULL;
		}
		path = end + 1;
	}
}

static NOINLINE struct inode *fs_create(const char *path, le16 mode)
{
	const char *name;
	u8 len;
	struct inode *dir = walk(path, &name, &len), *in = NULL;
	struct dentry *d;
	ino_t32 ino;

	if (!dir)
		return NULL;
	if (!d_lookup(dir, name, len) && (ino = alloc_inode())) {
		in = iget(ino);
		memset(in->raw, 0, sizeof(*in->raw));
		in->raw->mode = mode;
		in->raw->links = 1;
		in->raw->ctime = fs.clock;
		in->ops = (mode & S_KIND) == S_DIR ? &dir_ops : (mode & S_KIND) == S_LNK ? &link_ops : &file_ops;
		inode_dirty(in);
		dir_add(dir, name, len, ino, mode);
		d = d_find(dir->ino, name, len);
		if (d) {
			d->ino = ino;
			d->negative = 0;
		}
		fs_stats.created++;
	}
	iput(dir);
	return in;
}

static NOINLINE void fs_unlink(const char *path)
{
	const char *name;
	u8 len;
	struct inode *dir = walk(path, &name, &len), *in;
	struct buffer_head *bh;
	struct disk_dirent *d;
	struct dentry *cached;

	if (!dir)
		return;
	d = dir_find(dir, name, len, &bh);
	if (d) {
		in = iget(d->ino);
		if (!--in->raw->links) {
			in->ops->release(in);
			fs.bitmaps[Z_INODES][in->ino / 64] &= ~(1ull << (in->ino & 63));
			fs.super->free_inodes++;
		}
		in->raw->generation++;
		inode_dirty(in);
		iput(in);
		d->ino = 0;
		mark_dirty(bh);
		brelse(bh);
		cached = d_find(dir->ino, name, len);
		if (cached)
			d_drop(cached);
		fs_stats.removed++;
	}
	iput(dir);
}

static NOINLINE void sync_inodes(void)
{
	struct inode *in;

	list_for_each_entry(in, &fs.icache.dirty, dirty)
		in->raw->ctime = fs.clock;
	while (!list_empty(&fs.icache.dirty))
		list_del(fs.icache.dirty.next);
	journal_commit();
}

/* Counts what is in use and compares it with what the bitmaps say. */
static NOINLINE u64 check(void)
{
	const struct disk_inode *raw = (const struct disk_inode *)(fs.image + (size_t)fs.super->zones[Z_INODES].start * BLOCK);
	u64 used = 0, mapped = 0;
	le32 ino, i, w;

	for (ino = 0; ino < INODES; ino++, raw++) {
		if (!(fs.bitmaps[Z_INODES][ino / 64] >> (ino & 63) & 1) || (raw->mode & S_KIND) != S_REG)
			continue;
		for (i = 0; i < DIRECT; i++)
			used += raw->u.direct[i] != 0;
		if (raw->u.indirect) {
			const le32 *slot = (const le32 *)(fs.image + (size_t)raw->u.indirect * BLOCK);

			for (i = 0; i < PER_INDIRECT && slot[i]; i++)
				used++;
		}
	}
	for (w = 0; w < fs.super->zones[Z_DATA].count / 64; w++)
		mapped += (u64)__builtin_popcountll(fs.bitmaps[Z_DATA][w]);
	if (used != mapped)
		fs_stats.errors++;
	return used;
}

static NOINLINE u64 usage(struct inode *dir, int depth)
{
	u64 sum = 0;
	le32 b, i;

	for (b = 0; b < dir->raw->size / BLOCK; b++) {
		struct buffer_head *bh = bread(bmap(dir, b, 0), Z_DIRS);
		const struct disk_dirent *d = bh->data;

		for (i = 0; i < PER_DIR; i++, d++) {
			struct inode *in;

			if (!d->ino)
				continue;
			in = iget(d->ino);
			sum += in->raw->size + in->raw->blocks;
			if (d->kind == S_DIR >> 12 && depth < 4)
				sum += usage(in, depth + 1);
			iput(in);
		}
		brelse(bh);
	}
	return sum;
}

/* ---- the image ---- */

static void format(void)
{
	static const le32 counts[ZONES] = { 1, 8, INODES * sizeof(struct disk_inode) / BLOCK, 64, 64, 2048 };
	static const char *const types[ZONES] = { "struct disk_super", "u64", "struct disk_inode", "struct disk_dirent", "le32", "u8" };
	static const size_t sizes[ZONES] = { sizeof(struct disk_super), 8, sizeof(struct disk_inode), sizeof(struct disk_dirent), 4, 1 };
	le32 z, at = 0, total = 0, bitmap_words = 0;

	for (z = 0; z < ZONES; z++)
		total += counts[z];
	fs.image = calloc(total, BLOCK);
	fs.super = (struct disk_super *)fs.image;
	for (z = 0; z < ZONES; z++) {
		struct disk_zone *zone = &fs.super->zones[z];
		size_t bytes = z == Z_SUPER ? sizes[z] : (size_t)counts[z] * BLOCK;

		zone->start = at;
		zone->count = zone->free = counts[z];
		tr_region(types[z], fs.image + (size_t)at * BLOCK, bytes, sizes[z]);
		at += counts[z];
	}
	for (z = 0; z < ZONES; z++) {
		fs.bitmaps[z] = (u64 *)(fs.image + (size_t)fs.super->zones[Z_BITMAP].start * BLOCK) + bitmap_words;
		bitmap_words += z == Z_INODES ? INODES / 64 : (counts[z] + 63) / 64;
	}
	fs.super->magic = 0x1f5;
	fs.super->free_inodes = INODES - 2;
	fs.bitmaps[Z_INODES][0] = 3;
	list_init(&fs.bh_lru);
	list_init(&fs.icache.lru);
	list_init(&fs.icache.dirty);
	fs.journal = HEAP_CALLOC(struct journal_tag, JOURNAL_TAGS);
	{
		struct inode *root = iget(ROOT_INO);

		root->raw->mode = S_DIR | 0755;
		root->raw->links = 2;
		root->ops = &dir_ops;
	}
}

static void file_name(char *path, u64 r)
{
	static const char *const dirs[] = { "src", "src/net", "lib", "doc", "lib/core", "src/fs" };

	sprintf(path, "%s/%s%u.%c", dirs[r % 6], r >> 8 & 1 ? "module" : "test", (unsigned)(r >> 12) % 24, "cho"[r >> 20 & 1]);
}

static NOINLINE void reopen(struct file *f, u64 r)
{
	char path[64];
	const char *name;
	u8 len;
	struct inode *dir;
	ino_t32 ino;

	file_name(path, r);
	dir = walk(path, &name, &len);
	if (!dir)
		return;
	ino = d_lookup(dir, name, len);
	iput(dir);
	if (!ino)
		return;
	if (f->inode)
		iput(f->inode);
	f->inode = iget(ino);
	f->pos = f->ra.start = 0;
}

static NOINLINE void pump(struct file *f, u8 *buffer)
{
	long n;

	if (!f->inode || !f->inode->ops->read || !f->inode->raw->links)
		return;
	n = f->inode->ops->read(f->inode, f->pos, buffer, 260);
	if (f->ra.start == f->pos)
		f->ra.hits++;
	f->pos += (le32)n;
	f->ra.start = f->pos;
	f->ra.size = (le32)n;
	if (!n)
		f->pos = 0;
}

int main(int argc, char **argv)
{
	static const char *const dirs[] = { "src", "src/net", "lib", "doc", "lib/core", "src/fs" };
	u8 *buffer;
	u64 sum = 0;
	unsigned i, round;

	tr_init(argc, argv);
	TR_GLOBAL(fs, "struct fs");
	TR_GLOBAL(files, "struct file * []");
	TR_GLOBAL(fs_stats, "struct fs_stats");
	TR_GLOBAL(dir_ops, "struct inode_ops");
	TR_GLOBAL(file_ops, "struct inode_ops");
	TR_GLOBAL(link_ops, "struct inode_ops");
	TR_CHECK(struct inode, i);
	TR_CHECK(struct dentry, len);
	TR_CHECK(struct disk_inode, u);
	format();
	buffer = HEAP_CALLOC(unsigned char, 4096);
	for (i = 0; i < 6; i++)
		iput(fs_create(dirs[i], S_DIR | 0755));
	for (i = 0; i < 24; i++)
		files[i] = HEAP_CALLOC(struct file, 1);
	for (round = 0; tr_more(); round++) {
		u64 r = tr_rand();
		char path[64];
		struct inode *in;

		fs.clock++;
		file_name(path, r);
		switch (r >> 40 & 7) {
		case 0:
		case 1:
		case 2:
			in = fs_create(path, (r >> 50 & 15) ? S_REG | 0644 : S_LNK | 0777);
			if (!in)
				break;
			if (in->ops->write)
				in->ops->write(in, 0, buffer, (le32)(r >> 44) % 3000);
			else
				memcpy(in->raw->u.target, path, 32);
			iput(in);
			break;
		case 3:
			fs_unlink(path);
			break;
		case 4:
			in = files[r >> 50 & 15]->inode;
			if (in && in->ops->write && in->raw->links && in->raw->size < 14000)
				in->ops->write(in, in->raw->size, buffer, 700);
			break;
		default:
			reopen(files[r >> 50 & 15], r);
		}
		for (i = 0; i < 2; i++)
			pump(files[(r >> (20 + 4 * i)) & 15], buffer);
		if (round % 96 == 0) {
			in = iget(ROOT_INO);
			sum += usage(in, 0);
			iput(in);
		}
		if (round % 64 == 1)
			sync_inodes();
		if (round % 64 == 33)
			sum += check();
	}
	if (getenv("VERBOSE"))
		printf("%lu read %lu written %lu created %lu removed %lu commits %lu errors, bh %lu/%lu, dcache %lu/%lu\n",
		       fs_stats.read, fs_stats.written, fs_stats.created, fs_stats.removed, fs_stats.commits, fs_stats.errors,
		       fs_stats.bh_hits, fs_stats.bh_misses, fs_stats.dcache_hits, fs_stats.dcache_misses);
	tr_sink = sum + fs_stats.read;
	return 0;
}
