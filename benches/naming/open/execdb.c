/*-------------------------------------------------------------------------
 *
 * execdb.c
 *	  Query executor: nodes and lists, memory contexts, heap and btree pages
 *	  behind a buffer pool, slots that deform tuples, expressions as steps,
 *	  hash join, nested loop over an index scan, sort, hashed aggregation.
 *
 * In the manner of PostgreSQL.
 *-------------------------------------------------------------------------
 */
#include "../heap.h"
#include <stdbool.h>

typedef uintptr_t Datum;
typedef unsigned int Oid;
typedef uint8_t bits8;
typedef uint8_t uint8;
typedef uint16_t uint16;
typedef uint32_t uint32;
typedef int16_t int16;
typedef int32_t int32;
typedef int64_t int64;
typedef uint64_t uint64;
typedef size_t Size;
typedef uint32 BlockNumber;
typedef uint16 OffsetNumber;
typedef int16 AttrNumber;
typedef int Buffer;
typedef char *Page;
typedef uint32 TransactionId;

#define FLEXIBLE_ARRAY_MEMBER
#define InvalidBlockNumber ((BlockNumber) 0xFFFFFFFF)
#define InvalidBuffer 0
#define MAXALIGN(LEN) (((uintptr_t) (LEN) + 7) & ~(uintptr_t) 7)
#define TYPEALIGN(A, LEN) (((uintptr_t) (LEN) + ((A) - 1)) & ~(uintptr_t) ((A) - 1))
#define lengthof(a) (sizeof(a) / sizeof((a)[0]))
#define Assert(c) do { if (!(c)) abort(); } while (0)
#define BLCKSZ 8192

#define Int32GetDatum(X) ((Datum) (int64) (int32) (X))
#define DatumGetInt32(X) ((int32) (X))
#define Int64GetDatum(X) ((Datum) (X))
#define DatumGetInt64(X) ((int64) (X))
#define BoolGetDatum(X) ((Datum) ((X) ? 1 : 0))
#define DatumGetBool(X) ((bool) ((X) != 0))
#define PointerGetDatum(X) ((Datum) (X))
#define DatumGetPointer(X) ((char *) (X))

typedef enum NodeTag
{
	T_Invalid, T_List, T_IntList, T_Var, T_Const, T_Param, T_OpExpr, T_BoolExpr, T_NullTest, T_Aggref, T_TargetEntry,
	T_SeqScan, T_IndexScan, T_HashJoin, T_Hash, T_NestLoop, T_Sort, T_Agg, T_Limit,
	T_SeqScanState, T_IndexScanState, T_HashJoinState, T_HashState, T_NestLoopState, T_SortState, T_AggState, T_LimitState,
	T_EState, T_ExprContext, T_ExprState, T_ProjectionInfo, T_TupleTableSlot, T_AllocSetContext
} NodeTag;

typedef struct Node { NodeTag type; } Node;

#define nodeTag(nodeptr) (((const Node *) (nodeptr))->type)
#define IsA(nodeptr, _type_) (nodeTag(nodeptr) == T_##_type_)
#define castNode(_type_, nodeptr) ((_type_ *) (nodeptr))
#define makeNode(_type_) ((_type_ *) newNode(sizeof(_type_), T_##_type_, #_type_))

/* ---------------- memory contexts ---------------- */

typedef struct MemoryContextData *MemoryContext;
typedef struct ChunkKind { const char *name; const char *name2; Size first; Size size; struct MemoryChunk *freelist; struct ChunkKind *next; uint32 nalloc; } ChunkKind;
typedef struct MemoryChunk { MemoryContext context; struct MemoryChunk *next; ChunkKind *kind; Size requested; } MemoryChunk;
typedef struct MemoryContextData
{
	NodeTag type;
	bool isReset;
	Size mem_allocated;
	MemoryContext parent, firstchild, prevchild, nextchild;
	MemoryChunk *chunks;
	const char *name;
} MemoryContextData;

static MemoryContext TopMemoryContext, CurrentMemoryContext;
static ChunkKind *chunk_kinds[128];
static uint64 chunk_stats[2];

static inline MemoryContext MemoryContextSwitchTo(MemoryContext context)
{
	MemoryContext old = CurrentMemoryContext;

	CurrentMemoryContext = context;
	return old;
}

static NOINLINE void *AllocSetAlloc(MemoryContext context, const char *name, Size elem, const char *name2, Size first, Size size)
{
	Size		rounded = size <= 16 ? 16 : size > 1024 ? (Size) 1 << (64 - __builtin_clzl(size - 1)) : TYPEALIGN(16, size);
	uint32		h = ((uint32) (rounded >> 4) * 31 + (unsigned char) name[0] * 7 + (unsigned char) name[1]) % lengthof(chunk_kinds);
	ChunkKind  *kind;
	MemoryChunk *chunk;

	for (kind = chunk_kinds[h]; kind != NULL; kind = kind->next)
		if (kind->size == rounded && kind->first == first && (kind->name == name || strcmp(kind->name, name) == 0))
			break;
	if (kind == NULL)
	{
		kind = calloc(1, sizeof(ChunkKind));
		kind->name = name, kind->name2 = name2, kind->first = first, kind->size = rounded;
		kind->next = chunk_kinds[h], chunk_kinds[h] = kind;
	}
	if ((chunk = kind->freelist) != NULL)
		kind->freelist = chunk->next;
	else
	{
		char	   *p;

		chunk = calloc(1, sizeof(MemoryChunk) + rounded);
		p = (char *) (chunk + 1);
		tr_region("MemoryChunk", chunk, sizeof(MemoryChunk), sizeof(MemoryChunk));
		if (first)
		{
			tr_region(name, p, first, first);
			tr_region(name2, p + first, rounded - first, rounded - first);
		}
		else
			tr_region(name, p, elem ? rounded / elem * elem : rounded, elem ? elem : rounded);
		chunk->kind = kind;
		kind->nalloc++;
		chunk_stats[0]++;
	}
	chunk_stats[1]++;
	chunk->context = context;
	chunk->requested = size;
	chunk->next = context->chunks;
	context->chunks = chunk;
	context->mem_allocated += rounded;
	context->isReset = false;
	return chunk + 1;
}

static void *MemoryContextAllocZero(MemoryContext cxt, const char *name, Size elem, Size size)
{
	return memset(AllocSetAlloc(cxt, name, elem, NULL, 0, size), 0, size);
}

#define palloc_object(type) ((type *) AllocSetAlloc(CurrentMemoryContext, #type, sizeof(type), NULL, 0, sizeof(type)))
#define palloc0_object(type) ((type *) MemoryContextAllocZero(CurrentMemoryContext, #type, sizeof(type), sizeof(type)))
#define palloc_array(type, n) ((type *) AllocSetAlloc(CurrentMemoryContext, #type, sizeof(type), NULL, 0, sizeof(type) * (n)))
#define palloc0_array(type, n) ((type *) MemoryContextAllocZero(CurrentMemoryContext, #type, sizeof(type), sizeof(type) * (n)))
#define palloc_flex(type, size) ((type *) AllocSetAlloc(CurrentMemoryContext, #type, 0, NULL, 0, size))
#define repalloc_array(p, type, n) ((type *) repalloc_kind(p, #type, sizeof(type), sizeof(type) * (n)))

static void *repalloc_kind(void *pointer, const char *name, Size elem, Size size)
{
	MemoryChunk *old = (MemoryChunk *) pointer - 1;
	void	   *p = AllocSetAlloc(old->context, name, elem, NULL, 0, size);

	return memcpy(p, pointer, old->requested);
}

static NOINLINE void MemoryContextReset(MemoryContext context)
{
	MemoryChunk *chunk, *next;

	if (context->isReset)
		return;
	for (chunk = context->chunks; chunk != NULL; chunk = next)
	{
		next = chunk->next;
		chunk->next = chunk->kind->freelist;
		chunk->kind->freelist = chunk;
	}
	context->chunks = NULL;
	context->mem_allocated = 0;
	context->isReset = true;
}

static MemoryContext AllocSetContextCreate(MemoryContext parent, const char *name)
{
	MemoryContext node = HEAP_CALLOC(MemoryContextData, 1);

	node->type = T_AllocSetContext;
	node->name = name;
	node->isReset = true;
	if ((node->parent = parent) != NULL)
	{
		if ((node->nextchild = parent->firstchild) != NULL)
			parent->firstchild->prevchild = node;
		parent->firstchild = node;
	}
	return node;
}

static void MemoryContextDelete(MemoryContext context)
{
	while (context->firstchild != NULL)
		MemoryContextDelete(context->firstchild);
	MemoryContextReset(context);
	if (context->prevchild)
		context->prevchild->nextchild = context->nextchild;
	else
		context->parent->firstchild = context->nextchild;
	if (context->nextchild)
		context->nextchild->prevchild = context->prevchild;
	HEAP_FREE(context);
}

static Node *newNode(Size size, NodeTag tag, const char *name)
{
	Node	   *n = MemoryContextAllocZero(CurrentMemoryContext, name, size, size);

	n->type = tag;
	return n;
}

/* ---------------- lists ---------------- */

typedef union ListCell { void *ptr_value; int int_value; Oid oid_value; } ListCell;
typedef struct List { NodeTag type; int length; int max_length; ListCell *elements; ListCell initial_elements[FLEXIBLE_ARRAY_MEMBER]; } List;
#define NIL ((List *) NULL)
#define lfirst(lc) ((lc)->ptr_value)
#define lfirst_int(lc) ((lc)->int_value)
#define list_length(l) ((l) ? (l)->length : 0)
#define list_nth(l, n) ((l)->elements[n].ptr_value)
typedef struct ForEachState { const List *l; int i; } ForEachState;
#define foreach(cell, lst) \
	for (ForEachState cell##__state = {(lst), 0}; \
		 (cell##__state.l != NIL && cell##__state.i < cell##__state.l->length) ? (cell = &cell##__state.l->elements[cell##__state.i], true) : (cell = NULL, false); \
		 cell##__state.i++)

static List *new_list(NodeTag type, int min_size)
{
	int			max_size = min_size <= 5 ? 5 : min_size * 2;
	List	   *l = palloc_flex(List, offsetof(List, initial_elements) + max_size * sizeof(ListCell));

	l->type = type;
	l->length = 0;
	l->max_length = max_size;
	l->elements = l->initial_elements;
	return l;
}

static ListCell *new_tail_cell(List *list)
{
	if (list->length >= list->max_length)
	{
		ListCell   *e = palloc_array(ListCell, list->max_length * 2);

		memcpy(e, list->elements, list->length * sizeof(ListCell));
		list->elements = e;
		list->max_length *= 2;
	}
	return &list->elements[list->length++];
}

static List *lappend(List *list, void *datum)
{
	if (list == NIL)
		list = new_list(T_List, 1);
	new_tail_cell(list)->ptr_value = datum;
	return list;
}

static List *lappend_int(List *list, int datum)
{
	if (list == NIL)
		list = new_list(T_IntList, 1);
	new_tail_cell(list)->int_value = datum;
	return list;
}

#define list_make1(a) lappend(NIL, a)
#define list_make2(a, b) lappend(list_make1(a), b)
#define list_make3(a, b, c) lappend(list_make2(a, b), c)

/* ---------------- tuples ---------------- */

#define INT8OID 20
#define INT2OID 21
#define INT4OID 23
#define TEXTOID 25
#define NAMEDATALEN 32

typedef struct nameData { char data[NAMEDATALEN]; } NameData;
typedef struct FormData_pg_attribute { Oid atttypid; int16 attlen; AttrNumber attnum; int32 attcacheoff; bool attbyval; char attalign; bool attnotnull; NameData attname; } FormData_pg_attribute;
typedef FormData_pg_attribute *Form_pg_attribute;
typedef struct TupleDescData { int natts; Oid tdtypeid; int32 tdrefcount; FormData_pg_attribute attrs[FLEXIBLE_ARRAY_MEMBER]; } TupleDescData;
typedef TupleDescData *TupleDesc;
#define TupleDescAttr(tupdesc, i) (&(tupdesc)->attrs[(i)])

typedef struct varlena { uint32 vl_len_; char vl_dat[FLEXIBLE_ARRAY_MEMBER]; } text;
#define VARSIZE(PTR) (((text *) (PTR))->vl_len_ >> 2)
#define SET_VARSIZE(PTR, len) (((text *) (PTR))->vl_len_ = (uint32) (len) << 2)
#define VARDATA(PTR) (((text *) (PTR))->vl_dat)

typedef struct BlockIdData { uint16 bi_hi, bi_lo; } BlockIdData;
typedef struct ItemPointerData { BlockIdData ip_blkid; OffsetNumber ip_posid; } ItemPointerData;
typedef ItemPointerData *ItemPointer;
#define ItemPointerGetBlockNumber(p) (((BlockNumber) (p)->ip_blkid.bi_hi << 16) | (p)->ip_blkid.bi_lo)
static inline void ItemPointerSet(ItemPointer p, BlockNumber b, OffsetNumber o) { p->ip_blkid.bi_hi = b >> 16; p->ip_blkid.bi_lo = b & 0xffff; p->ip_posid = o; }

typedef struct HeapTupleFields { TransactionId t_xmin, t_xmax; union { uint32 t_cid; TransactionId t_xvac; } t_field3; } HeapTupleFields;
typedef struct DatumTupleFields { int32 datum_len_, datum_typmod; Oid datum_typeid; } DatumTupleFields;
typedef struct HeapTupleHeaderData
{
	union { HeapTupleFields t_heap; DatumTupleFields t_datum; } t_choice;
	ItemPointerData t_ctid;
	uint16 t_infomask2, t_infomask;
	uint8 t_hoff;
	bits8 t_bits[FLEXIBLE_ARRAY_MEMBER];
} HeapTupleHeaderData;
typedef HeapTupleHeaderData *HeapTupleHeader;
typedef struct MinimalTupleData { uint32 t_len; char mt_padding[6]; uint16 t_infomask2, t_infomask; uint8 t_hoff; bits8 t_bits[FLEXIBLE_ARRAY_MEMBER]; } MinimalTupleData;
typedef MinimalTupleData *MinimalTuple;
#define SizeofHeapTupleHeader offsetof(HeapTupleHeaderData, t_bits)
#define MINIMAL_TUPLE_OFFSET (offsetof(HeapTupleHeaderData, t_infomask2) - offsetof(MinimalTupleData, t_infomask2))
typedef struct HeapTupleData { uint32 t_len; ItemPointerData t_self; Oid t_tableOid; HeapTupleHeader t_data; } HeapTupleData;
typedef HeapTupleData *HeapTuple;

#define HEAP_HASNULL 0x0001
#define HEAP_HASVARWIDTH 0x0002
#define HEAP_XMIN_COMMITTED 0x0100
#define HEAP_XMAX_INVALID 0x0800
#define HEAP_NATTS_MASK 0x07FF
#define att_isnull(ATT, BITS) (!((BITS)[(ATT) >> 3] & (1 << ((ATT) & 0x07))))

static Datum fetch_att(const void *T, bool attbyval, int attlen)
{
	if (!attbyval)
		return PointerGetDatum(T);
	switch (attlen)
	{
		case 2: return (Datum) (int64) *(const int16 *) T;
		case 4: return Int32GetDatum(*(const int32 *) T);
		default: return *(const Datum *) T;
	}
}

static inline Size att_align_nominal(Size off, char attalign)
{
	return attalign == 'i' ? TYPEALIGN(4, off) : attalign == 'd' ? TYPEALIGN(8, off) : TYPEALIGN(2, off);
}

static TupleDesc CreateTemplateTupleDesc(int natts, const Oid *types, const char *const *names)
{
	TupleDesc	desc = palloc_flex(TupleDescData, offsetof(TupleDescData, attrs) + natts * sizeof(FormData_pg_attribute));

	desc->natts = natts, desc->tdtypeid = 2249, desc->tdrefcount = 1;
	for (int i = 0; i < natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		att->atttypid = types[i];
		att->attnum = i + 1;
		att->attcacheoff = -1;
		att->attbyval = types[i] != TEXTOID;
		att->attlen = types[i] == TEXTOID ? -1 : types[i] == INT2OID ? 2 : types[i] == INT4OID ? 4 : 8;
		att->attalign = types[i] == INT8OID ? 'd' : types[i] == INT2OID ? 's' : 'i';
		att->attnotnull = false;
		snprintf(att->attname.data, NAMEDATALEN, "%s", names ? names[i] : "?column?");
	}
	return desc;
}

static Size heap_compute_data_size(TupleDesc desc, const Datum *values, const bool *isnull)
{
	Size		len = 0;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute atti = TupleDescAttr(desc, i);

		if (isnull[i])
			continue;
		len = att_align_nominal(len, atti->attalign);
		len += atti->attlen == -1 ? VARSIZE(DatumGetPointer(values[i])) : (Size) atti->attlen;
	}
	return len;
}

static NOINLINE void heap_fill_tuple(TupleDesc desc, const Datum *values, const bool *isnull, char *data, uint16 *infomask, bits8 *bit)
{
	char	   *start = data;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (bit)
		{
			if ((i & 7) == 0)
				bit[i >> 3] = 0;
			if (!isnull[i])
				bit[i >> 3] |= 1 << (i & 7);
		}
		if (isnull[i])
		{
			*infomask |= HEAP_HASNULL;
			continue;
		}
		data = start + att_align_nominal(data - start, att->attalign);
		if (att->attlen == -1)
		{
			Size		n = VARSIZE(DatumGetPointer(values[i]));

			*infomask |= HEAP_HASVARWIDTH;
			memcpy(data, DatumGetPointer(values[i]), n);
			data += n;
			continue;
		}
		if (att->attlen == 2)
			*(int16 *) data = (int16) values[i];
		else if (att->attlen == 4)
			*(int32 *) data = DatumGetInt32(values[i]);
		else
			*(Datum *) data = values[i];
		data += att->attlen;
	}
}

static bool has_nulls(TupleDesc desc, const bool *isnull)
{
	for (int i = 0; i < desc->natts; i++)
		if (isnull[i])
			return true;
	return false;
}

/* extra: bytes to leave before the tuple, for a HashJoinTupleData */
static NOINLINE MinimalTuple heap_form_minimal_tuple(TupleDesc desc, const Datum *values, const bool *isnull, Size extra)
{
	bool		hasnull = has_nulls(desc, isnull);
	Size		hoff = MAXALIGN(SizeofHeapTupleHeader + (hasnull ? (desc->natts + 7) / 8 : 0)) - MINIMAL_TUPLE_OFFSET;
	Size		len = hoff + heap_compute_data_size(desc, values, isnull);
	MinimalTuple tuple;

	if (extra)
		tuple = (MinimalTuple) ((char *) AllocSetAlloc(CurrentMemoryContext, "HashJoinTupleData", 0, "MinimalTupleData", extra, extra + len) + extra);
	else
		tuple = palloc_flex(MinimalTupleData, len);
	tuple->t_len = len;
	tuple->t_infomask2 = desc->natts;
	tuple->t_infomask = 0;
	tuple->t_hoff = hoff + MINIMAL_TUPLE_OFFSET;
	heap_fill_tuple(desc, values, isnull, (char *) tuple + hoff, &tuple->t_infomask, hasnull ? tuple->t_bits : NULL);
	return tuple;
}

/* ---------------- pages and buffers ---------------- */

typedef struct ItemIdData { unsigned lp_off : 15, lp_flags : 2, lp_len : 15; } ItemIdData;
typedef ItemIdData *ItemId;
typedef struct PageHeaderData { uint64 pd_lsn; uint16 pd_checksum, pd_flags, pd_lower, pd_upper, pd_special, pd_pagesize_version; TransactionId pd_prune_xid; ItemIdData pd_linp[FLEXIBLE_ARRAY_MEMBER]; } PageHeaderData;
typedef PageHeaderData *PageHeader;
typedef struct BTPageOpaqueData { BlockNumber btpo_prev, btpo_next; uint32 btpo_level; uint16 btpo_flags, btpo_cycleid; } BTPageOpaqueData;
typedef BTPageOpaqueData *BTPageOpaque;
typedef struct IndexTupleData { ItemPointerData t_tid; uint16 t_info; } IndexTupleData;
typedef IndexTupleData *IndexTuple;
#define PageGetItemId(page, off) (&((PageHeader) (page))->pd_linp[(off) - 1])
#define PageGetItem(page, lp) ((void *) ((char *) (page) + (lp)->lp_off))
#define PageGetMaxOffsetNumber(page) ((OffsetNumber) ((((PageHeader) (page))->pd_lower - offsetof(PageHeaderData, pd_linp)) / sizeof(ItemIdData)))
#define BTPageGetOpaque(page) ((BTPageOpaque) ((char *) (page) + ((PageHeader) (page))->pd_special))

typedef struct RelationData { Oid rd_id; BlockNumber rd_nblocks; Page *rd_smgr; TupleDesc rd_att; uint64 rd_reads; NameData rd_name; } RelationData;
typedef RelationData *Relation;
static RelationData relcache[3];

typedef struct buftag { Oid relNumber; BlockNumber blockNum; } BufferTag;
typedef struct BufferDesc { BufferTag tag; int buf_id; uint32 state; int wait_backend_pgprocno; int freeNext; uint64 content_lock; } BufferDesc;
typedef union BufferDescPadded { BufferDesc bufferdesc; char pad[64]; } BufferDescPadded;
#define NBuffers 32
#define BUF_USAGECOUNT_ONE (1U << 18)
#define BUF_STATE_GET_REFCOUNT(s) ((s) & ((1U << 18) - 1))
#define BUF_STATE_GET_USAGECOUNT(s) (((s) >> 18) & 0xf)
#define BM_VALID (1U << 24)
#define BM_TAG_VALID (1U << 25)
#define BM_DIRTY (1U << 23)
static BufferDescPadded BufferDescriptors[NBuffers];
static Page BufferBlocks[NBuffers];
static struct BufferStrategyControl { uint32 nextVictimBuffer; int firstFreeBuffer, lastFreeBuffer; uint32 completePasses, numBufferAllocs; } StrategyControl;
static struct BufferUsage { int64 shared_blks_hit, shared_blks_read, shared_blks_dirtied; } pgBufferUsage;
#define GetBufferDescriptor(id) (&BufferDescriptors[id].bufferdesc)
#define BufferGetPage(b) (BufferBlocks[(b) - 1])

/* dynahash: elements with the caller's entry behind them */
typedef struct HASHELEMENT { struct HASHELEMENT *link; uint32 hashvalue; } HASHELEMENT;
typedef struct BufferLookupEnt { BufferTag key; int id; } BufferLookupEnt;
typedef struct HTAB { HASHELEMENT **dir; uint32 mask; HASHELEMENT *freeList; long nentries; Size keysize; int (*match) (const void *, const void *, Size); uint64 accesses, collisions; } HTAB;
typedef enum { HASH_FIND, HASH_ENTER, HASH_REMOVE } HASHACTION;
#define ELEMENTKEY(helem) (((char *) (helem)) + MAXALIGN(sizeof(HASHELEMENT)))
static HTAB *SharedBufHash;

static int tag_match(const void *a, const void *b, Size keysize)
{
	const BufferTag *x = a, *y = b;

	(void) keysize;
	return !(x->relNumber == y->relNumber && x->blockNum == y->blockNum);
}

static inline uint32 murmurhash32(uint32 h)
{
	h ^= h >> 16; h *= 0x85ebca6b; h ^= h >> 13; h *= 0xc2b2ae35;
	return h ^ (h >> 16);
}

static NOINLINE void *hash_search_with_hash_value(HTAB *hashp, const void *keyPtr, uint32 hashvalue, HASHACTION action, bool *foundPtr)
{
	HASHELEMENT **prevBucketPtr = &hashp->dir[hashvalue & hashp->mask];
	HASHELEMENT *currBucket = *prevBucketPtr;

	hashp->accesses++;
	while (currBucket != NULL)
	{
		if (currBucket->hashvalue == hashvalue && hashp->match(ELEMENTKEY(currBucket), keyPtr, hashp->keysize) == 0)
			break;
		prevBucketPtr = &currBucket->link;
		currBucket = *prevBucketPtr;
		hashp->collisions++;
	}
	if (foundPtr)
		*foundPtr = currBucket != NULL;
	switch (action)
	{
		case HASH_FIND:
			return currBucket ? ELEMENTKEY(currBucket) : NULL;
		case HASH_REMOVE:
			if (currBucket == NULL)
				return NULL;
			*prevBucketPtr = currBucket->link;
			currBucket->link = hashp->freeList;
			hashp->freeList = currBucket;
			hashp->nentries--;
			return ELEMENTKEY(currBucket);
		case HASH_ENTER:
			if (currBucket)
				return ELEMENTKEY(currBucket);
			currBucket = hashp->freeList;
			Assert(currBucket != NULL);
			hashp->freeList = currBucket->link;
			currBucket->link = NULL;
			*prevBucketPtr = currBucket;
			currBucket->hashvalue = hashvalue;
			memcpy(ELEMENTKEY(currBucket), keyPtr, hashp->keysize);
			hashp->nentries++;
			return ELEMENTKEY(currBucket);
	}
	return NULL;
}

static NOINLINE BufferDesc *StrategyGetBuffer(void)
{
	StrategyControl.numBufferAllocs++;
	if (StrategyControl.firstFreeBuffer >= 0)
	{
		BufferDesc *buf = GetBufferDescriptor(StrategyControl.firstFreeBuffer);

		StrategyControl.firstFreeBuffer = buf->freeNext;
		buf->freeNext = -2;
		return buf;
	}
	for (int trycounter = NBuffers * 8; trycounter > 0; trycounter--)
	{
		BufferDesc *buf = GetBufferDescriptor(StrategyControl.nextVictimBuffer);

		if (++StrategyControl.nextVictimBuffer >= NBuffers)
		{
			StrategyControl.nextVictimBuffer = 0;
			StrategyControl.completePasses++;
		}
		if (BUF_STATE_GET_REFCOUNT(buf->state) == 0)
		{
			if (BUF_STATE_GET_USAGECOUNT(buf->state) == 0)
				return buf;
			buf->state -= BUF_USAGECOUNT_ONE;
		}
	}
	abort();
}

static NOINLINE Buffer ReadBuffer(Relation rel, BlockNumber blk)
{
	BufferTag	tag = {rel->rd_id, blk};
	uint32		hash = murmurhash32(rel->rd_id * 65599 + blk);
	BufferLookupEnt *ent = hash_search_with_hash_value(SharedBufHash, &tag, hash, HASH_FIND, NULL);
	BufferDesc *buf;

	if (ent != NULL)
	{
		buf = GetBufferDescriptor(ent->id);
		Assert(buf->state & BM_VALID);
		pgBufferUsage.shared_blks_hit++;
		if (BUF_STATE_GET_USAGECOUNT(buf->state) < 5)
			buf->state += BUF_USAGECOUNT_ONE;
		buf->state++;
		return buf->buf_id + 1;
	}
	buf = StrategyGetBuffer();
	if (buf->state & BM_TAG_VALID)
	{
		if (buf->state & BM_DIRTY)
			pgBufferUsage.shared_blks_dirtied++;
		Assert(hash_search_with_hash_value(SharedBufHash, &buf->tag, murmurhash32(buf->tag.relNumber * 65599 + buf->tag.blockNum), HASH_REMOVE, NULL) != NULL);
	}
	ent = hash_search_with_hash_value(SharedBufHash, &tag, hash, HASH_ENTER, NULL);
	ent->id = buf->buf_id;
	buf->tag = tag;
	buf->state = BM_VALID | BM_TAG_VALID | BUF_USAGECOUNT_ONE | 1;
	BufferBlocks[buf->buf_id] = rel->rd_smgr[blk];	/* the storage manager maps its blocks */
	pgBufferUsage.shared_blks_read++;
	rel->rd_reads++;
	return buf->buf_id + 1;
}

static inline void ReleaseBuffer(Buffer b)
{
	if (b != InvalidBuffer)
		GetBufferDescriptor(b - 1)->state--;
}

static inline void IncrBufferRefCount(Buffer b) { GetBufferDescriptor(b - 1)->state++; }

static Page extend_relation(Relation rel, Size special)
{
	Page		page = malloc(BLCKSZ);
	PageHeader	p = (PageHeader) page;

	memset(page, 0, BLCKSZ);
	p->pd_lower = offsetof(PageHeaderData, pd_linp);
	p->pd_special = p->pd_upper = BLCKSZ - special;
	p->pd_pagesize_version = BLCKSZ | 4;
	rel->rd_smgr[rel->rd_nblocks++] = page;
	return page;
}

static OffsetNumber PageAddItem(Page page, const void *item, Size size)
{
	PageHeader	p = (PageHeader) page;
	Size		aligned = MAXALIGN(size);
	ItemId		lp;

	if (p->pd_upper < p->pd_lower + sizeof(ItemIdData) + aligned)
		return 0;
	lp = (ItemId) (page + p->pd_lower);
	p->pd_lower += sizeof(ItemIdData);
	p->pd_upper -= aligned;
	lp->lp_off = p->pd_upper, lp->lp_flags = 1, lp->lp_len = size;
	memcpy(page + p->pd_upper, item, size);
	return (p->pd_lower - offsetof(PageHeaderData, pd_linp)) / sizeof(ItemIdData);
}

/* Pages keep their layout once loaded: say what lies where. */
static void announce_pages(Relation rel, const char *item)
{
	for (BlockNumber b = 0; b < rel->rd_nblocks; b++)
	{
		Page		page = rel->rd_smgr[b];
		PageHeader	p = (PageHeader) page;

		tr_region("PageHeaderData", page, offsetof(PageHeaderData, pd_linp), sizeof(PageHeaderData));
		tr_region("ItemIdData", p->pd_linp, p->pd_lower - offsetof(PageHeaderData, pd_linp), sizeof(ItemIdData));
		for (OffsetNumber o = 1; o <= PageGetMaxOffsetNumber(page); o++)
		{
			ItemId		lp = PageGetItemId(page, o);

			tr_region(item, PageGetItem(page, lp), lp->lp_len, lp->lp_len);
		}
		if (p->pd_special < BLCKSZ)
			tr_region("BTPageOpaqueData", page + p->pd_special, BLCKSZ - p->pd_special, sizeof(BTPageOpaqueData));
	}
}

/* ---------------- slots ---------------- */

typedef struct TupleTableSlot TupleTableSlot;
typedef struct TupleTableSlotOps { Size base_slot_size; void (*clear) (TupleTableSlot *slot); void (*getsomeattrs) (TupleTableSlot *slot, int natts); } TupleTableSlotOps;
struct TupleTableSlot { NodeTag type; uint16 tts_flags; AttrNumber tts_nvalid; const TupleTableSlotOps *tts_ops; TupleDesc tts_tupleDescriptor; Datum *tts_values; bool *tts_isnull; ItemPointerData tts_tid; Oid tts_tableOid; };
typedef struct HeapTupleTableSlot { TupleTableSlot base; HeapTuple tuple; uint32 off; HeapTupleData tupdata; } HeapTupleTableSlot;
typedef struct BufferHeapTupleTableSlot { HeapTupleTableSlot base; Buffer buffer; } BufferHeapTupleTableSlot;
typedef struct MinimalTupleTableSlot { TupleTableSlot base; HeapTuple tuple; MinimalTuple mintuple; HeapTupleData minhdr; uint32 off; } MinimalTupleTableSlot;
#define TTS_FLAG_EMPTY 2
#define TTS_FLAG_SLOW 8
#define TupIsNull(slot) ((slot) == NULL || ((slot)->tts_flags & TTS_FLAG_EMPTY))

static inline __attribute__((always_inline)) void slot_deform_heap_tuple(TupleTableSlot *slot, HeapTuple tuple, uint32 *offp, int natts)
{
	TupleDesc	desc = slot->tts_tupleDescriptor;
	Datum	   *values = slot->tts_values;
	bool	   *isnull = slot->tts_isnull;
	HeapTupleHeader tup = tuple->t_data;
	bool		hasnulls = (tup->t_infomask & HEAP_HASNULL) != 0;
	int			attnum = slot->tts_nvalid;
	char	   *tp;
	uint32		off;
	bool		slow;

	natts = (tup->t_infomask2 & HEAP_NATTS_MASK) < natts ? (tup->t_infomask2 & HEAP_NATTS_MASK) : natts;
	if (attnum == 0)
		off = 0, slow = false;
	else
		off = *offp, slow = (slot->tts_flags & TTS_FLAG_SLOW) != 0;
	tp = (char *) tup + tup->t_hoff;
	for (; attnum < natts; attnum++)
	{
		Form_pg_attribute thisatt = TupleDescAttr(desc, attnum);

		if (hasnulls && att_isnull(attnum, tup->t_bits))
		{
			values[attnum] = (Datum) 0;
			isnull[attnum] = true;
			slow = true;
			continue;
		}
		isnull[attnum] = false;
		if (!slow && thisatt->attcacheoff >= 0)
			off = thisatt->attcacheoff;
		else
		{
			off = att_align_nominal(off, thisatt->attalign);
			if (!slow)
				thisatt->attcacheoff = off;
		}
		values[attnum] = fetch_att(tp + off, thisatt->attbyval, thisatt->attlen);
		if (thisatt->attlen == -1)
		{
			off += VARSIZE(tp + off);
			slow = true;
		}
		else
			off += thisatt->attlen;
	}
	slot->tts_nvalid = attnum;
	*offp = off;
	if (slow)
		slot->tts_flags |= TTS_FLAG_SLOW;
	else
		slot->tts_flags &= ~TTS_FLAG_SLOW;
}

static void tts_virtual_clear(TupleTableSlot *slot) { slot->tts_nvalid = 0; slot->tts_flags |= TTS_FLAG_EMPTY; }
static void tts_virtual_getsomeattrs(TupleTableSlot *slot, int natts) { (void) slot; (void) natts; abort(); }
static void tts_buffer_heap_clear(TupleTableSlot *slot)
{
	BufferHeapTupleTableSlot *bslot = (BufferHeapTupleTableSlot *) slot;

	ReleaseBuffer(bslot->buffer);
	bslot->buffer = InvalidBuffer;
	slot->tts_nvalid = 0;
	slot->tts_flags |= TTS_FLAG_EMPTY;
	bslot->base.tuple = NULL;
	bslot->base.off = 0;
}
static NOINLINE void tts_buffer_heap_getsomeattrs(TupleTableSlot *slot, int natts)
{
	BufferHeapTupleTableSlot *bslot = (BufferHeapTupleTableSlot *) slot;

	slot_deform_heap_tuple(slot, bslot->base.tuple, &bslot->base.off, natts);
}
static void tts_minimal_clear(TupleTableSlot *slot)
{
	MinimalTupleTableSlot *mslot = (MinimalTupleTableSlot *) slot;

	slot->tts_nvalid = 0;
	slot->tts_flags |= TTS_FLAG_EMPTY;
	mslot->off = 0;
	mslot->mintuple = NULL;
}
static NOINLINE void tts_minimal_getsomeattrs(TupleTableSlot *slot, int natts)
{
	MinimalTupleTableSlot *mslot = (MinimalTupleTableSlot *) slot;

	slot_deform_heap_tuple(slot, mslot->tuple, &mslot->off, natts);
}

static const TupleTableSlotOps TTSOpsVirtual = {sizeof(TupleTableSlot), tts_virtual_clear, tts_virtual_getsomeattrs};
static const TupleTableSlotOps TTSOpsBufferHeapTuple = {sizeof(BufferHeapTupleTableSlot), tts_buffer_heap_clear, tts_buffer_heap_getsomeattrs};
static const TupleTableSlotOps TTSOpsMinimalTuple = {sizeof(MinimalTupleTableSlot), tts_minimal_clear, tts_minimal_getsomeattrs};

static TupleTableSlot *MakeTupleTableSlot(TupleDesc desc, const TupleTableSlotOps *ops)
{
	TupleTableSlot *slot;

	if (ops == &TTSOpsVirtual)
		slot = palloc0_object(TupleTableSlot);
	else if (ops == &TTSOpsMinimalTuple)
	{
		slot = (TupleTableSlot *) palloc0_object(MinimalTupleTableSlot);
		((MinimalTupleTableSlot *) slot)->tuple = &((MinimalTupleTableSlot *) slot)->minhdr;
	}
	else
		slot = (TupleTableSlot *) palloc0_object(BufferHeapTupleTableSlot);
	slot->type = T_TupleTableSlot;
	slot->tts_ops = ops;
	slot->tts_flags = TTS_FLAG_EMPTY;
	slot->tts_tupleDescriptor = desc;
	slot->tts_values = palloc0_array(Datum, desc->natts);
	slot->tts_isnull = palloc0_array(bool, desc->natts);
	return slot;
}

static inline TupleTableSlot *ExecClearTuple(TupleTableSlot *slot)
{
	slot->tts_ops->clear(slot);
	return slot;
}

static inline void slot_getsomeattrs(TupleTableSlot *slot, int attnum)
{
	if (slot->tts_nvalid < attnum)
		slot->tts_ops->getsomeattrs(slot, attnum);
}

static TupleTableSlot *ExecStoreMinimalTuple(MinimalTuple mtup, TupleTableSlot *slot)
{
	MinimalTupleTableSlot *mslot = (MinimalTupleTableSlot *) slot;

	slot->tts_nvalid = 0;
	slot->tts_flags &= ~TTS_FLAG_EMPTY;
	mslot->off = 0;
	mslot->mintuple = mtup;
	mslot->minhdr.t_len = mtup->t_len + MINIMAL_TUPLE_OFFSET;
	mslot->minhdr.t_data = (HeapTupleHeader) ((char *) mtup - MINIMAL_TUPLE_OFFSET);
	return slot;
}

static void ExecStoreBufferHeapTuple(TupleTableSlot *slot, Buffer buffer, ItemId lp, HeapTupleHeader tup, BlockNumber blk, OffsetNumber off)
{
	BufferHeapTupleTableSlot *bslot = (BufferHeapTupleTableSlot *) slot;

	if (bslot->buffer != buffer)
	{
		ReleaseBuffer(bslot->buffer);
		IncrBufferRefCount(buffer);
		bslot->buffer = buffer;
	}
	slot->tts_flags &= ~TTS_FLAG_EMPTY;
	slot->tts_nvalid = 0;
	bslot->base.off = 0;
	bslot->base.tuple = &bslot->base.tupdata;
	bslot->base.tupdata.t_len = lp->lp_len;
	bslot->base.tupdata.t_data = tup;
	ItemPointerSet(&bslot->base.tupdata.t_self, blk, off);
	slot->tts_tid = bslot->base.tupdata.t_self;
}

/* ---------------- functions ---------------- */

typedef struct NullableDatum { Datum value; bool isnull; } NullableDatum;
typedef struct FunctionCallInfoBaseData *FunctionCallInfo;
typedef Datum (*PGFunction) (FunctionCallInfo fcinfo);
typedef struct FmgrInfo { PGFunction fn_addr; Oid fn_oid; short fn_nargs; bool fn_strict; uint64 fn_calls; const char *fn_name; } FmgrInfo;
typedef struct FunctionCallInfoBaseData { FmgrInfo *flinfo; Node *context; Oid fncollation; bool isnull; short nargs; NullableDatum args[FLEXIBLE_ARRAY_MEMBER]; } FunctionCallInfoBaseData;
#define PG_FUNCTION_ARGS FunctionCallInfo fcinfo
#define PG_GETARG_INT32(n) DatumGetInt32(fcinfo->args[n].value)
#define PG_GETARG_INT64(n) DatumGetInt64(fcinfo->args[n].value)
#define PG_GETARG_TEXT_PP(n) ((text *) DatumGetPointer(fcinfo->args[n].value))
#define PG_RETURN_BOOL(x) return BoolGetDatum(x)
#define SizeForFunctionCallInfo(n) (offsetof(FunctionCallInfoBaseData, args) + sizeof(NullableDatum) * (n))

static Datum int4eq(PG_FUNCTION_ARGS) { PG_RETURN_BOOL(PG_GETARG_INT32(0) == PG_GETARG_INT32(1)); }
static Datum int4ne(PG_FUNCTION_ARGS) { PG_RETURN_BOOL(PG_GETARG_INT32(0) != PG_GETARG_INT32(1)); }
static Datum int8gt(PG_FUNCTION_ARGS) { PG_RETURN_BOOL(PG_GETARG_INT64(0) > PG_GETARG_INT64(1)); }
static Datum int8lt(PG_FUNCTION_ARGS) { PG_RETURN_BOOL(PG_GETARG_INT64(0) < PG_GETARG_INT64(1)); }
static Datum int8pl(PG_FUNCTION_ARGS) { return Int64GetDatum(PG_GETARG_INT64(0) + PG_GETARG_INT64(1)); }
static Datum int8larger(PG_FUNCTION_ARGS) { return PG_GETARG_INT64(0) > PG_GETARG_INT64(1) ? fcinfo->args[0].value : fcinfo->args[1].value; }
static Datum int8inc(PG_FUNCTION_ARGS) { return Int64GetDatum(PG_GETARG_INT64(0) + 1); }
static Datum texteq(PG_FUNCTION_ARGS)
{
	text	   *arg1 = PG_GETARG_TEXT_PP(0), *arg2 = PG_GETARG_TEXT_PP(1);
	Size		len = VARSIZE(arg1);

	if (len != VARSIZE(arg2))
		PG_RETURN_BOOL(false);
	for (Size i = 0; i < len - 4; i++)
		if (VARDATA(arg1)[i] != VARDATA(arg2)[i])
			PG_RETURN_BOOL(false);
	PG_RETURN_BOOL(true);
}
static Datum hashint4(PG_FUNCTION_ARGS) { return murmurhash32((uint32) PG_GETARG_INT32(0)); }
static Datum btint4cmp(PG_FUNCTION_ARGS) { int32 a = PG_GETARG_INT32(0), b = PG_GETARG_INT32(1); return Int32GetDatum(a > b ? 1 : a == b ? 0 : -1); }

enum { F_INT4EQ, F_INT4NE, F_INT8GT, F_INT8LT, F_INT8PL, F_INT8LARGER, F_INT8INC, F_TEXTEQ, F_HASHINT4, F_BTINT4CMP };
static FmgrInfo fmgr_builtins[] = {
	{int4eq, 65, 2, true, 0, "int4eq"}, {int4ne, 144, 2, true, 0, "int4ne"}, {int8gt, 470, 2, true, 0, "int8gt"}, {int8lt, 469, 2, true, 0, "int8lt"}, {int8pl, 463, 2, true, 0, "int8pl"},
	{int8larger, 1236, 2, true, 0, "int8larger"}, {int8inc, 1219, 1, false, 0, "int8inc"}, {texteq, 67, 2, true, 0, "texteq"}, {hashint4, 450, 1, true, 0, "hashint4"}, {btint4cmp, 351, 2, true, 0, "btint4cmp"},
};

/* ---------------- expressions and plans ---------------- */

#define INNER_VAR 65000
#define OUTER_VAR 65001
typedef Node Expr;
typedef struct Var { NodeTag type; int varno; AttrNumber varattno; Oid vartype; } Var;
typedef struct Const { NodeTag type; Oid consttype; Datum constvalue; bool constisnull; } Const;
typedef struct Param { NodeTag type; int paramid; } Param;
typedef struct OpExpr { NodeTag type; int opfuncid; Oid opresulttype; List *args; } OpExpr;
typedef enum { AND_EXPR, OR_EXPR, NOT_EXPR } BoolExprType;
typedef struct BoolExpr { NodeTag type; BoolExprType boolop; List *args; } BoolExpr;
typedef struct NullTest { NodeTag type; Expr *arg; bool isnotnull; } NullTest;
typedef struct Aggref { NodeTag type; int aggfnoid; List *args; int aggno; Datum initval; bool initnull; } Aggref;
typedef struct TargetEntry { NodeTag type; Expr *expr; AttrNumber resno; Oid restype; const char *resname; } TargetEntry;

typedef struct Plan { NodeTag type; double plan_rows; List *targetlist, *qual; struct Plan *lefttree, *righttree; } Plan;
typedef struct SeqScan { Plan plan; Relation rel; } SeqScan;
typedef struct IndexScan { Plan plan; Relation rel, index; Expr *key; } IndexScan;
typedef struct HashJoin { Plan plan; List *hashclauses; Expr *outerkey, *innerkey; } HashJoin;
typedef struct Hash { Plan plan; } Hash;
typedef struct NestLoop { Plan plan; int paramno; AttrNumber paramattr; } NestLoop;
typedef struct Sort { Plan plan; int numCols; AttrNumber *sortColIdx; bool *reverse; } Sort;
typedef struct Agg { Plan plan; AttrNumber grpCol; List *aggs; } Agg;
typedef struct Limit { Plan plan; int64 count; } Limit;

typedef struct ParamExecData { Datum value; bool isnull; } ParamExecData;
typedef struct EState { NodeTag type; MemoryContext es_query_cxt; ParamExecData *es_param_exec_vals; uint64 es_processed; List *es_exprcontexts; List *es_tupleTable; } EState;
typedef struct ExprContext { NodeTag type; TupleTableSlot *ecxt_scantuple, *ecxt_innertuple, *ecxt_outertuple; MemoryContext ecxt_per_tuple_memory; EState *ecxt_estate; ParamExecData *ecxt_params; } ExprContext;

typedef enum ExprEvalOp
{
	EEOP_DONE, EEOP_INNER_FETCHSOME, EEOP_OUTER_FETCHSOME, EEOP_SCAN_FETCHSOME, EEOP_INNER_VAR, EEOP_OUTER_VAR, EEOP_SCAN_VAR, EEOP_CONST, EEOP_PARAM_EXEC, EEOP_FUNCEXPR_STRICT,
	EEOP_BOOL_AND_STEP, EEOP_BOOL_OR_STEP, EEOP_BOOL_NOT_STEP, EEOP_NULLTEST_ISNULL, EEOP_NULLTEST_ISNOTNULL, EEOP_QUAL, EEOP_ASSIGN_INNER_VAR, EEOP_ASSIGN_OUTER_VAR, EEOP_ASSIGN_SCAN_VAR, EEOP_ASSIGN_TMP, EEOP_AGG_TRANS
} ExprEvalOp;

struct AggState;
typedef struct ExprEvalStep
{
	ExprEvalOp opcode;
	Datum *resvalue;
	bool *resnull;
	union
	{
		struct { int last_var; TupleDesc known_desc; } fetch;
		struct { int attnum; Oid vartype; } var;
		struct { Datum value; bool isnull; } constval;
		struct { int paramid; } param;
		struct { FmgrInfo *finfo; FunctionCallInfo fcinfo_data; PGFunction fn_addr; int nargs; } func;
		struct { bool *anynull; int jumpdone; } boolexpr;
		struct { int jumpdone; } qualexpr;
		struct { int resultnum, attnum; } assign_var;
		struct { int resultnum; } assign_tmp;
		struct { struct AggState *aggstate; FunctionCallInfo fcinfo_data; int transno; } agg_trans;
	} d;
} ExprEvalStep;

typedef struct ExprState { NodeTag type; uint8 flags; bool resnull; Datum resvalue; TupleTableSlot *resultslot; ExprEvalStep *steps; int steps_len, steps_alloc; Datum (*evalfunc) (struct ExprState *, ExprContext *, bool *); Expr *expr; } ExprState;
typedef struct ProjectionInfo { NodeTag type; ExprState pi_state; ExprContext *pi_exprContext; } ProjectionInfo;
typedef struct Instrumentation { double ntuples, nloops, nfiltered1; bool running; } Instrumentation;

typedef struct PlanState PlanState;
typedef TupleTableSlot *(*ExecProcNodeMtd) (PlanState *pstate);
struct PlanState
{
	NodeTag type; Plan *plan; EState *state;
	ExecProcNodeMtd ExecProcNode, ExecProcNodeReal;
	Instrumentation *instrument; ExprState *qual; PlanState *lefttree, *righttree;
	TupleTableSlot *ps_ResultTupleSlot; ExprContext *ps_ExprContext; ProjectionInfo *ps_ProjInfo; TupleDesc scandesc;
};
#define outerPlanState(node) (((PlanState *) (node))->lefttree)
#define innerPlanState(node) (((PlanState *) (node))->righttree)
#define InstrCountFiltered1(node, delta) ((node)->instrument->nfiltered1 += (delta))

typedef struct ScanState { PlanState ps; Relation ss_currentRelation; TupleTableSlot *ss_ScanTupleSlot; } ScanState;
typedef struct HeapScanDescData { Relation rs_rd; BlockNumber rs_cblock; Buffer rs_cbuf; int rs_cindex, rs_ntuples; OffsetNumber rs_vistuples[300]; } HeapScanDescData;
typedef struct SeqScanState { ScanState ss; HeapScanDescData *scandesc; } SeqScanState;
typedef struct BTScanPosItem { ItemPointerData heapTid; OffsetNumber indexOffset; } BTScanPosItem;
typedef struct BTScanOpaqueData { int firstItem, lastItem, itemIndex; BlockNumber nextPage; bool moreRight; BTScanPosItem items[408]; } BTScanOpaqueData;
typedef struct IndexScanState { ScanState ss; Relation iss_index; ExprState *iss_key; BTScanOpaqueData *so; int32 key; FunctionCallInfo cmp; bool started; } IndexScanState;
typedef struct HashJoinTupleData { struct HashJoinTupleData *next; uint32 hashvalue; } HashJoinTupleData;
typedef HashJoinTupleData *HashJoinTuple;
#define HJTUPLE_OVERHEAD MAXALIGN(sizeof(HashJoinTupleData))
#define HJTUPLE_MINTUPLE(hjtup) ((MinimalTuple) ((char *) (hjtup) + HJTUPLE_OVERHEAD))
typedef struct HashJoinTableData { int nbuckets, log2_nbuckets; HashJoinTuple *buckets; double totalTuples; Size spaceUsed, spacePeak; MemoryContext hashCxt; } HashJoinTableData;
typedef HashJoinTableData *HashJoinTable;
typedef struct HashState { PlanState ps; HashJoinTable hashtable; ExprState *hashkey; } HashState;
typedef struct HashJoinState { PlanState ps; ExprState *hashclauses, *outerkey; HashJoinTable hj_HashTable; uint32 hj_CurHashValue; int hj_CurBucketNo, hj_JoinState; HashJoinTuple hj_CurTuple; TupleTableSlot *hj_HashTupleSlot; } HashJoinState;
typedef struct NestLoopState { PlanState ps; bool nl_NeedNewOuter; } NestLoopState;

typedef struct SortSupportData { AttrNumber ssup_attno; bool ssup_reverse, ssup_nulls_first; int (*comparator) (Datum x, Datum y, struct SortSupportData *ssup); uint64 compared; } SortSupportData;
typedef SortSupportData *SortSupport;
typedef struct SortTuple { void *tuple; Datum datum1; bool isnull1; int srctape; } SortTuple;
typedef struct Tuplesortstate { int nKeys; SortSupport sortKeys; TupleDesc tupDesc; SortTuple *memtuples; int memtupcount, memtupsize, current; MemoryContext tuplecontext; int (*comparetup) (const SortTuple *a, const SortTuple *b, struct Tuplesortstate *state); } Tuplesortstate;
typedef struct SortState { PlanState ps; bool sort_Done; Tuplesortstate *tuplesortstate; } SortState;

typedef struct AggStatePerGroupData { Datum transValue; bool transValueIsNull, noTransValue; } AggStatePerGroupData;
typedef AggStatePerGroupData *AggStatePerGroup;
typedef struct TupleHashEntryData { MinimalTuple firstTuple; AggStatePerGroup additional; uint32 status, hash; int32 key; } TupleHashEntryData;
typedef struct tuplehash_hash { uint64 size; uint32 members, sizemask, grow_threshold; TupleHashEntryData *data; } tuplehash_hash;
typedef struct AggState { PlanState ps; int numaggs; List *aggs; ExprState *phase; AggStatePerGroup all_pergroups; tuplehash_hash *hashtable; MemoryContext hashcontext; uint64 hash_iter; bool table_filled; TupleTableSlot *hashslot; } AggState;
typedef struct LimitState { PlanState ps; int64 count, position; } LimitState;

static void ExprEvalPushStep(ExprState *es, const ExprEvalStep *s)
{
	if (es->steps_alloc == 0)
	{
		es->steps_alloc = 8;
		es->steps = palloc_array(ExprEvalStep, es->steps_alloc);
	}
	else if (es->steps_alloc == es->steps_len)
	{
		es->steps_alloc *= 2;
		es->steps = repalloc_array(es->steps, ExprEvalStep, es->steps_alloc);
	}
	es->steps[es->steps_len++] = *s;
}

/* walker: the highest attribute that is needed of each input */
typedef struct LastAttnumInfo { AttrNumber last_inner, last_outer, last_scan; } LastAttnumInfo;

static bool expression_tree_walker(Node *node, bool (*walker) (Node *, void *), void *context)
{
	ListCell   *lc;

	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_OpExpr: return expression_tree_walker((Node *) ((OpExpr *) node)->args, walker, context);
		case T_BoolExpr: return expression_tree_walker((Node *) ((BoolExpr *) node)->args, walker, context);
		case T_NullTest: return walker(((NullTest *) node)->arg, context);
		case T_Aggref: return expression_tree_walker((Node *) ((Aggref *) node)->args, walker, context);
		case T_TargetEntry: return walker(((TargetEntry *) node)->expr, context);
		case T_List:
			foreach(lc, (List *) node)
				if (walker(lfirst(lc), context))
					return true;
			return false;
		default: return false;
	}
}

static bool get_last_attnums_walker(Node *node, void *context)
{
	LastAttnumInfo *info = context;

	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		Var		   *v = castNode(Var, node);
		AttrNumber *last = v->varno == INNER_VAR ? &info->last_inner : v->varno == OUTER_VAR ? &info->last_outer : &info->last_scan;

		if (*last < v->varattno)
			*last = v->varattno;
		return false;
	}
	return expression_tree_walker(node, get_last_attnums_walker, context);
}

static void ExecCreateExprSetupSteps(ExprState *state, Node *node)
{
	LastAttnumInfo info = {0, 0, 0};
	ExprEvalStep scratch = {0};

	get_last_attnums_walker(node, &info);
	if (info.last_inner > 0)
		scratch.opcode = EEOP_INNER_FETCHSOME, scratch.d.fetch.last_var = info.last_inner, ExprEvalPushStep(state, &scratch);
	if (info.last_outer > 0)
		scratch.opcode = EEOP_OUTER_FETCHSOME, scratch.d.fetch.last_var = info.last_outer, ExprEvalPushStep(state, &scratch);
	if (info.last_scan > 0)
		scratch.opcode = EEOP_SCAN_FETCHSOME, scratch.d.fetch.last_var = info.last_scan, ExprEvalPushStep(state, &scratch);
}

static void ExecInitExprRec(Expr *node, ExprState *state, Datum *resv, bool *resnull)
{
	ExprEvalStep scratch = {0};
	ListCell   *lc;

	scratch.resvalue = resv;
	scratch.resnull = resnull;
	switch (nodeTag(node))
	{
		case T_Var:
			scratch.d.var.attnum = ((Var *) node)->varattno - 1;
			scratch.d.var.vartype = ((Var *) node)->vartype;
			scratch.opcode = ((Var *) node)->varno == INNER_VAR ? EEOP_INNER_VAR : ((Var *) node)->varno == OUTER_VAR ? EEOP_OUTER_VAR : EEOP_SCAN_VAR;
			ExprEvalPushStep(state, &scratch);
			break;
		case T_Const:
			scratch.opcode = EEOP_CONST;
			scratch.d.constval.value = ((Const *) node)->constvalue;
			scratch.d.constval.isnull = ((Const *) node)->constisnull;
			ExprEvalPushStep(state, &scratch);
			break;
		case T_Param:
			scratch.opcode = EEOP_PARAM_EXEC;
			scratch.d.param.paramid = ((Param *) node)->paramid;
			ExprEvalPushStep(state, &scratch);
			break;
		case T_OpExpr:
			{
				OpExpr	   *op = castNode(OpExpr, node);
				int			nargs = list_length(op->args), argno = 0;
				FunctionCallInfo fcinfo = palloc_flex(FunctionCallInfoBaseData, SizeForFunctionCallInfo(nargs));

				fcinfo->flinfo = &fmgr_builtins[op->opfuncid];
				fcinfo->nargs = nargs;
				fcinfo->isnull = false;
				foreach(lc, op->args)
				{
					Expr	   *arg = lfirst(lc);

					if (IsA(arg, Const))
					{
						fcinfo->args[argno].value = ((Const *) arg)->constvalue;
						fcinfo->args[argno].isnull = ((Const *) arg)->constisnull;
					}
					else
						ExecInitExprRec(arg, state, &fcinfo->args[argno].value, &fcinfo->args[argno].isnull);
					argno++;
				}
				scratch.opcode = EEOP_FUNCEXPR_STRICT;
				scratch.d.func.finfo = fcinfo->flinfo;
				scratch.d.func.fcinfo_data = fcinfo;
				scratch.d.func.fn_addr = fcinfo->flinfo->fn_addr;
				scratch.d.func.nargs = nargs;
				ExprEvalPushStep(state, &scratch);
				break;
			}
		case T_BoolExpr:
			{
				BoolExpr   *b = castNode(BoolExpr, node);
				List	   *adjust_jumps = NIL;

				foreach(lc, b->args)
				{
					ExecInitExprRec(lfirst(lc), state, resv, resnull);
					scratch.opcode = b->boolop == AND_EXPR ? EEOP_BOOL_AND_STEP : b->boolop == OR_EXPR ? EEOP_BOOL_OR_STEP : EEOP_BOOL_NOT_STEP;
					scratch.d.boolexpr.jumpdone = -1;
					ExprEvalPushStep(state, &scratch);
					adjust_jumps = lappend_int(adjust_jumps, state->steps_len - 1);
				}
				foreach(lc, adjust_jumps)
					state->steps[lfirst_int(lc)].d.boolexpr.jumpdone = state->steps_len;
				break;
			}
		case T_NullTest:
			ExecInitExprRec(((NullTest *) node)->arg, state, resv, resnull);
			scratch.opcode = ((NullTest *) node)->isnotnull ? EEOP_NULLTEST_ISNOTNULL : EEOP_NULLTEST_ISNULL;
			ExprEvalPushStep(state, &scratch);
			break;
		default:
			abort();
	}
}

static NOINLINE Datum ExecInterpExpr(ExprState *state, ExprContext *econtext, bool *isnull)
{
	ExprEvalStep *op = state->steps;
	TupleTableSlot *resultslot = state->resultslot, *innerslot = econtext->ecxt_innertuple, *outerslot = econtext->ecxt_outertuple, *scanslot = econtext->ecxt_scantuple;

	for (;;)
	{
		switch (op->opcode)
		{
			case EEOP_DONE:
				*isnull = state->resnull;
				return state->resvalue;
			case EEOP_INNER_FETCHSOME: slot_getsomeattrs(innerslot, op->d.fetch.last_var); op++; break;
			case EEOP_OUTER_FETCHSOME: slot_getsomeattrs(outerslot, op->d.fetch.last_var); op++; break;
			case EEOP_SCAN_FETCHSOME: slot_getsomeattrs(scanslot, op->d.fetch.last_var); op++; break;
			case EEOP_INNER_VAR: *op->resvalue = innerslot->tts_values[op->d.var.attnum]; *op->resnull = innerslot->tts_isnull[op->d.var.attnum]; op++; break;
			case EEOP_OUTER_VAR: *op->resvalue = outerslot->tts_values[op->d.var.attnum]; *op->resnull = outerslot->tts_isnull[op->d.var.attnum]; op++; break;
			case EEOP_SCAN_VAR: *op->resvalue = scanslot->tts_values[op->d.var.attnum]; *op->resnull = scanslot->tts_isnull[op->d.var.attnum]; op++; break;
			case EEOP_CONST: *op->resnull = op->d.constval.isnull; *op->resvalue = op->d.constval.value; op++; break;
			case EEOP_PARAM_EXEC:
				*op->resvalue = econtext->ecxt_params[op->d.param.paramid].value;
				*op->resnull = econtext->ecxt_params[op->d.param.paramid].isnull;
				op++;
				break;
			case EEOP_FUNCEXPR_STRICT:
				{
					FunctionCallInfo fcinfo = op->d.func.fcinfo_data;
					NullableDatum *args = fcinfo->args;
					int			argno;

					for (argno = 0; argno < op->d.func.nargs; argno++)
						if (args[argno].isnull)
							break;
					if (argno < op->d.func.nargs)
						*op->resnull = true;
					else
					{
						fcinfo->isnull = false;
						op->d.func.finfo->fn_calls++;
						*op->resvalue = op->d.func.fn_addr(fcinfo);
						*op->resnull = fcinfo->isnull;
					}
					op++;
					break;
				}
			case EEOP_BOOL_AND_STEP:
				if (!*op->resnull && !DatumGetBool(*op->resvalue)) { op = &state->steps[op->d.boolexpr.jumpdone]; break; }
				op++;
				break;
			case EEOP_BOOL_OR_STEP:
				if (!*op->resnull && DatumGetBool(*op->resvalue)) { op = &state->steps[op->d.boolexpr.jumpdone]; break; }
				op++;
				break;
			case EEOP_BOOL_NOT_STEP: *op->resvalue = BoolGetDatum(!DatumGetBool(*op->resvalue)); op++; break;
			case EEOP_NULLTEST_ISNULL: *op->resvalue = BoolGetDatum(*op->resnull); *op->resnull = false; op++; break;
			case EEOP_NULLTEST_ISNOTNULL: *op->resvalue = BoolGetDatum(!*op->resnull); *op->resnull = false; op++; break;
			case EEOP_QUAL:
				if (*op->resnull || !DatumGetBool(*op->resvalue))
				{
					*op->resnull = false;
					*op->resvalue = BoolGetDatum(false);
					op = &state->steps[op->d.qualexpr.jumpdone];
					break;
				}
				op++;
				break;
			case EEOP_ASSIGN_INNER_VAR: resultslot->tts_values[op->d.assign_var.resultnum] = innerslot->tts_values[op->d.assign_var.attnum]; resultslot->tts_isnull[op->d.assign_var.resultnum] = innerslot->tts_isnull[op->d.assign_var.attnum]; op++; break;
			case EEOP_ASSIGN_OUTER_VAR: resultslot->tts_values[op->d.assign_var.resultnum] = outerslot->tts_values[op->d.assign_var.attnum]; resultslot->tts_isnull[op->d.assign_var.resultnum] = outerslot->tts_isnull[op->d.assign_var.attnum]; op++; break;
			case EEOP_ASSIGN_SCAN_VAR: resultslot->tts_values[op->d.assign_var.resultnum] = scanslot->tts_values[op->d.assign_var.attnum]; resultslot->tts_isnull[op->d.assign_var.resultnum] = scanslot->tts_isnull[op->d.assign_var.attnum]; op++; break;
			case EEOP_ASSIGN_TMP:
				resultslot->tts_values[op->d.assign_tmp.resultnum] = state->resvalue;
				resultslot->tts_isnull[op->d.assign_tmp.resultnum] = state->resnull;
				op++;
				break;
			case EEOP_AGG_TRANS:
				{
					FunctionCallInfo fcinfo = op->d.agg_trans.fcinfo_data;
					AggStatePerGroup pergroup = &op->d.agg_trans.aggstate->all_pergroups[op->d.agg_trans.transno];
					bool		strict = fcinfo->flinfo->fn_strict;

					if (strict && fcinfo->args[1].isnull)
						;
					else if (pergroup->noTransValue && strict)
					{
						pergroup->transValue = fcinfo->args[1].value;
						pergroup->transValueIsNull = pergroup->noTransValue = false;
					}
					else
					{
						fcinfo->args[0].value = pergroup->transValue;
						fcinfo->args[0].isnull = pergroup->transValueIsNull;
						fcinfo->flinfo->fn_calls++;
						pergroup->transValue = fcinfo->flinfo->fn_addr(fcinfo);
						pergroup->transValueIsNull = false;
					}
					op++;
					break;
				}
		}
	}
}

static void ExecReadyExpr(ExprState *state)
{
	ExprEvalStep scratch = {0};

	scratch.opcode = EEOP_DONE;
	ExprEvalPushStep(state, &scratch);
	state->evalfunc = ExecInterpExpr;
}

static ExprState *ExecInitExpr(Expr *node)
{
	ExprState  *state = makeNode(ExprState);

	state->expr = node;
	ExecCreateExprSetupSteps(state, node);
	ExecInitExprRec(node, state, &state->resvalue, &state->resnull);
	ExecReadyExpr(state);
	return state;
}

static ExprState *ExecInitQual(List *qual)
{
	ExprState  *state;
	ExprEvalStep scratch = {0};
	List	   *adjust_jumps = NIL;
	ListCell   *lc;

	if (qual == NIL)
		return NULL;
	state = makeNode(ExprState);
	ExecCreateExprSetupSteps(state, (Node *) qual);
	foreach(lc, qual)
	{
		ExecInitExprRec(lfirst(lc), state, &state->resvalue, &state->resnull);
		scratch.opcode = EEOP_QUAL;
		scratch.resvalue = &state->resvalue;
		scratch.resnull = &state->resnull;
		ExprEvalPushStep(state, &scratch);
		adjust_jumps = lappend_int(adjust_jumps, state->steps_len - 1);
	}
	foreach(lc, adjust_jumps)
		state->steps[lfirst_int(lc)].d.qualexpr.jumpdone = state->steps_len;
	ExecReadyExpr(state);
	return state;
}

static ProjectionInfo *ExecBuildProjectionInfo(List *targetList, ExprContext *econtext, TupleTableSlot *slot)
{
	ProjectionInfo *proj = makeNode(ProjectionInfo);
	ExprState  *state = &proj->pi_state;
	ExprEvalStep scratch = {0};
	ListCell   *lc;

	proj->pi_exprContext = econtext;
	state->type = T_ExprState;
	state->resultslot = slot;
	ExecCreateExprSetupSteps(state, (Node *) targetList);
	foreach(lc, targetList)
	{
		TargetEntry *tle = lfirst(lc);

		if (IsA(tle->expr, Var))
		{
			Var		   *v = (Var *) tle->expr;

			scratch.opcode = v->varno == INNER_VAR ? EEOP_ASSIGN_INNER_VAR : v->varno == OUTER_VAR ? EEOP_ASSIGN_OUTER_VAR : EEOP_ASSIGN_SCAN_VAR;
			scratch.d.assign_var.attnum = v->varattno - 1;
			scratch.d.assign_var.resultnum = tle->resno - 1;
		}
		else
		{
			ExecInitExprRec(tle->expr, state, &state->resvalue, &state->resnull);
			scratch.opcode = EEOP_ASSIGN_TMP;
			scratch.d.assign_tmp.resultnum = tle->resno - 1;
		}
		ExprEvalPushStep(state, &scratch);
	}
	ExecReadyExpr(state);
	return proj;
}

static inline bool ExecQual(ExprState *state, ExprContext *econtext)
{
	bool		isnull;

	return state == NULL || DatumGetBool(state->evalfunc(state, econtext, &isnull));
}

static inline TupleTableSlot *ExecProject(ProjectionInfo *proj)
{
	TupleTableSlot *slot = proj->pi_state.resultslot;
	bool		isnull;

	ExecClearTuple(slot);
	proj->pi_state.evalfunc(&proj->pi_state, proj->pi_exprContext, &isnull);
	slot->tts_flags &= ~TTS_FLAG_EMPTY;
	slot->tts_nvalid = slot->tts_tupleDescriptor->natts;
	return slot;
}

static inline TupleTableSlot *ExecProcNode(PlanState *node) { return node->ExecProcNode(node); }

/* ---------------- scans ---------------- */

static inline bool HeapTupleSatisfiesMVCC(HeapTupleHeader tuple)
{
	if (!(tuple->t_infomask & HEAP_XMIN_COMMITTED))
	{
		if (tuple->t_choice.t_heap.t_xmin > 1000)
			return false;
		tuple->t_infomask |= HEAP_XMIN_COMMITTED;
	}
	return (tuple->t_infomask & HEAP_XMAX_INVALID) || tuple->t_choice.t_heap.t_xmax == 0;
}

static NOINLINE void heapgetpage(HeapScanDescData *scan, BlockNumber block)
{
	Page		page;
	int			ntup = 0;

	ReleaseBuffer(scan->rs_cbuf);
	scan->rs_cbuf = ReadBuffer(scan->rs_rd, block);
	scan->rs_cblock = block;
	page = BufferGetPage(scan->rs_cbuf);
	for (OffsetNumber lineoff = 1, lines = PageGetMaxOffsetNumber(page); lineoff <= lines; lineoff++)
	{
		ItemId		lpp = PageGetItemId(page, lineoff);

		if (lpp->lp_flags == 1 && HeapTupleSatisfiesMVCC(PageGetItem(page, lpp)))
			scan->rs_vistuples[ntup++] = lineoff;
	}
	scan->rs_ntuples = ntup;
	scan->rs_cindex = 0;
}

static NOINLINE bool heap_getnextslot(HeapScanDescData *scan, TupleTableSlot *slot)
{
	while (scan->rs_cbuf == InvalidBuffer || scan->rs_cindex >= scan->rs_ntuples)
	{
		BlockNumber next = scan->rs_cbuf == InvalidBuffer ? 0 : scan->rs_cblock + 1;

		if (next >= scan->rs_rd->rd_nblocks)
		{
			ReleaseBuffer(scan->rs_cbuf);
			scan->rs_cbuf = InvalidBuffer;
			ExecClearTuple(slot);
			return false;
		}
		heapgetpage(scan, next);
	}
	OffsetNumber off = scan->rs_vistuples[scan->rs_cindex++];
	Page		page = BufferGetPage(scan->rs_cbuf);
	ItemId		lp = PageGetItemId(page, off);

	ExecStoreBufferHeapTuple(slot, scan->rs_cbuf, lp, PageGetItem(page, lp), scan->rs_cblock, off);
	return true;
}

static TupleTableSlot *SeqNext(ScanState *ss)
{
	SeqScanState *node = (SeqScanState *) ss;

	if (node->scandesc == NULL)
	{
		node->scandesc = palloc_object(HeapScanDescData);
		node->scandesc->rs_rd = ss->ss_currentRelation;
		node->scandesc->rs_cbuf = InvalidBuffer;
		node->scandesc->rs_cindex = node->scandesc->rs_ntuples = 0;
	}
	return heap_getnextslot(node->scandesc, ss->ss_ScanTupleSlot) ? ss->ss_ScanTupleSlot : NULL;
}

static inline __attribute__((always_inline)) TupleTableSlot *ExecScan(ScanState *node, TupleTableSlot *(*accessMtd) (ScanState *))
{
	ExprContext *econtext = node->ps.ps_ExprContext;

	for (;;)
	{
		TupleTableSlot *slot = accessMtd(node);

		if (TupIsNull(slot))
			return node->ps.ps_ProjInfo ? ExecClearTuple(node->ps.ps_ResultTupleSlot) : slot;
		econtext->ecxt_scantuple = slot;
		if (ExecQual(node->ps.qual, econtext))
			return node->ps.ps_ProjInfo ? ExecProject(node->ps.ps_ProjInfo) : slot;
		InstrCountFiltered1(&node->ps, 1);
		MemoryContextReset(econtext->ecxt_per_tuple_memory);
	}
}

static TupleTableSlot *ExecSeqScan(PlanState *pstate) { return ExecScan((ScanState *) pstate, SeqNext); }

static inline int32 _bt_compare(IndexScanState *node, Page page, OffsetNumber off)
{
	IndexTuple	itup = PageGetItem(page, PageGetItemId(page, off));

	node->cmp->args[0].value = Int32GetDatum(node->key);
	node->cmp->args[1].value = fetch_att((char *) itup + sizeof(IndexTupleData), true, 4);
	return DatumGetInt32(node->cmp->flinfo->fn_addr(node->cmp));
}

static NOINLINE OffsetNumber _bt_binsrch(IndexScanState *node, Page page)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber low = opaque->btpo_level ? 2 : 1, high = PageGetMaxOffsetNumber(page) + 1;

	while (high > low)
	{
		OffsetNumber mid = low + ((high - low) / 2);

		if (_bt_compare(node, page, mid) > 0)
			low = mid + 1;
		else
			high = mid;
	}
	return opaque->btpo_level ? low - 1 : low;
}

static NOINLINE void _bt_readpage(IndexScanState *node, Page page, OffsetNumber off)
{
	BTScanOpaqueData *so = node->so;
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);

	so->firstItem = so->itemIndex = 0;
	so->lastItem = -1;
	so->nextPage = BTPageGetOpaque(page)->btpo_next;
	so->moreRight = so->nextPage != InvalidBlockNumber;
	for (; off <= maxoff; off++)
	{
		if (_bt_compare(node, page, off) != 0)
		{
			so->moreRight = false;
			break;
		}
		BTScanPosItem *item = &so->items[++so->lastItem];

		item->heapTid = ((IndexTuple) PageGetItem(page, PageGetItemId(page, off)))->t_tid;
		item->indexOffset = off;
	}
}

static NOINLINE void _bt_first(IndexScanState *node)
{
	BlockNumber blk = node->iss_index->rd_nblocks - 1;	/* the root was written last */

	for (;;)
	{
		Buffer		buf = ReadBuffer(node->iss_index, blk);
		Page		page = BufferGetPage(buf);
		OffsetNumber off = _bt_binsrch(node, page);

		if (BTPageGetOpaque(page)->btpo_level == 0)
		{
			_bt_readpage(node, page, off);
			/* the key may begin on the next page */
			if (off > PageGetMaxOffsetNumber(page))
				node->so->moreRight = node->so->nextPage != InvalidBlockNumber;
			ReleaseBuffer(buf);
			return;
		}
		blk = ItemPointerGetBlockNumber(&((IndexTuple) PageGetItem(page, PageGetItemId(page, off)))->t_tid);
		ReleaseBuffer(buf);
	}
}

static TupleTableSlot *IndexNext(ScanState *ss)
{
	IndexScanState *node = (IndexScanState *) ss;
	BTScanOpaqueData *so = node->so;
	bool		isnull;

	if (!node->started)
	{
		node->key = DatumGetInt32(node->iss_key->evalfunc(node->iss_key, ss->ps.ps_ExprContext, &isnull));
		node->started = true;
		_bt_first(node);
	}
	while (so->itemIndex > so->lastItem)
	{
		if (!so->moreRight)
		{
			ExecClearTuple(ss->ss_ScanTupleSlot);
			return NULL;
		}
		Buffer		buf = ReadBuffer(node->iss_index, so->nextPage);

		_bt_readpage(node, BufferGetPage(buf), 1);
		ReleaseBuffer(buf);
	}
	ItemPointer tid = &so->items[so->itemIndex++].heapTid;
	Buffer		hbuf = ReadBuffer(ss->ss_currentRelation, ItemPointerGetBlockNumber(tid));
	Page		page = BufferGetPage(hbuf);
	ItemId		lp = PageGetItemId(page, tid->ip_posid);

	ExecStoreBufferHeapTuple(ss->ss_ScanTupleSlot, hbuf, lp, PageGetItem(page, lp), ItemPointerGetBlockNumber(tid), tid->ip_posid);
	ReleaseBuffer(hbuf);
	return ss->ss_ScanTupleSlot;
}

static TupleTableSlot *ExecIndexScan(PlanState *pstate) { return ExecScan((ScanState *) pstate, IndexNext); }

/* ---------------- joins ---------------- */

static NOINLINE void ExecHashTableInsert(HashJoinTable hashtable, TupleTableSlot *slot, uint32 hashvalue)
{
	int			bucketno = hashvalue & (hashtable->nbuckets - 1);
	MemoryContext old = MemoryContextSwitchTo(hashtable->hashCxt);
	MinimalTuple tuple;
	HashJoinTuple hashTuple;

	slot_getsomeattrs(slot, slot->tts_tupleDescriptor->natts);
	tuple = heap_form_minimal_tuple(slot->tts_tupleDescriptor, slot->tts_values, slot->tts_isnull, HJTUPLE_OVERHEAD);
	hashTuple = (HashJoinTuple) ((char *) tuple - HJTUPLE_OVERHEAD);
	hashTuple->hashvalue = hashvalue;
	hashTuple->next = hashtable->buckets[bucketno];
	hashtable->buckets[bucketno] = hashTuple;
	hashtable->spaceUsed += HJTUPLE_OVERHEAD + tuple->t_len;
	if (hashtable->spaceUsed > hashtable->spacePeak)
		hashtable->spacePeak = hashtable->spaceUsed;
	hashtable->totalTuples += 1;
	MemoryContextSwitchTo(old);
}

static void MultiExecHash(HashState *node)
{
	PlanState  *outerNode = outerPlanState(node);
	ExprContext *econtext = node->ps.ps_ExprContext;

	for (;;)
	{
		TupleTableSlot *slot = ExecProcNode(outerNode);
		bool		isnull;
		Datum		key;

		if (TupIsNull(slot))
			break;
		econtext->ecxt_outertuple = slot;
		key = node->hashkey->evalfunc(node->hashkey, econtext, &isnull);
		if (!isnull)
			ExecHashTableInsert(node->hashtable, slot, murmurhash32((uint32) key));
	}
}

static NOINLINE bool ExecScanHashBucket(HashJoinState *hjstate, ExprContext *econtext)
{
	HashJoinTuple hashTuple = hjstate->hj_CurTuple;
	uint32		hashvalue = hjstate->hj_CurHashValue;

	hashTuple = hashTuple != NULL ? hashTuple->next : hjstate->hj_HashTable->buckets[hjstate->hj_CurBucketNo];
	while (hashTuple != NULL)
	{
		if (hashTuple->hashvalue == hashvalue)
		{
			econtext->ecxt_innertuple = ExecStoreMinimalTuple(HJTUPLE_MINTUPLE(hashTuple), hjstate->hj_HashTupleSlot);
			if (ExecQual(hjstate->hashclauses, econtext))
			{
				hjstate->hj_CurTuple = hashTuple;
				return true;
			}
		}
		hashTuple = hashTuple->next;
	}
	return false;
}

enum { HJ_BUILD_HASHTABLE = 1, HJ_NEED_NEW_OUTER, HJ_SCAN_BUCKET };

static TupleTableSlot *ExecHashJoin(PlanState *pstate)
{
	HashJoinState *node = (HashJoinState *) pstate;
	ExprContext *econtext = node->ps.ps_ExprContext;

	for (;;)
	{
		switch (node->hj_JoinState)
		{
			case HJ_BUILD_HASHTABLE:
				MultiExecHash((HashState *) innerPlanState(node));
				node->hj_JoinState = HJ_NEED_NEW_OUTER;
				/* FALLTHROUGH */
			case HJ_NEED_NEW_OUTER:
				{
					TupleTableSlot *outer = ExecProcNode(outerPlanState(node));
					bool		isnull;

					if (TupIsNull(outer))
						return NULL;
					econtext->ecxt_outertuple = outer;
					node->hj_CurHashValue = murmurhash32((uint32) node->outerkey->evalfunc(node->outerkey, econtext, &isnull));
					if (isnull)
						continue;
					node->hj_CurBucketNo = node->hj_CurHashValue & (node->hj_HashTable->nbuckets - 1);
					node->hj_CurTuple = NULL;
					node->hj_JoinState = HJ_SCAN_BUCKET;
				}
				/* FALLTHROUGH */
			case HJ_SCAN_BUCKET:
				if (!ExecScanHashBucket(node, econtext))
				{
					node->hj_JoinState = HJ_NEED_NEW_OUTER;
					continue;
				}
				if (ExecQual(node->ps.qual, econtext))
					return ExecProject(node->ps.ps_ProjInfo);
				InstrCountFiltered1(&node->ps, 1);
		}
	}
}

static TupleTableSlot *ExecNestLoop(PlanState *pstate)
{
	NestLoopState *node = (NestLoopState *) pstate;
	NestLoop   *nl = (NestLoop *) node->ps.plan;
	ExprContext *econtext = node->ps.ps_ExprContext;
	TupleTableSlot *slot;

	for (;;)
	{
		if (node->nl_NeedNewOuter)
		{
			ParamExecData *prm = &node->ps.state->es_param_exec_vals[nl->paramno];

			slot = ExecProcNode(outerPlanState(node));
			if (TupIsNull(slot))
				return NULL;
			econtext->ecxt_outertuple = slot;
			node->nl_NeedNewOuter = false;
			slot_getsomeattrs(slot, nl->paramattr);
			prm->value = slot->tts_values[nl->paramattr - 1];
			prm->isnull = slot->tts_isnull[nl->paramattr - 1];
			((IndexScanState *) innerPlanState(node))->started = false;
		}
		slot = ExecProcNode(innerPlanState(node));
		if (TupIsNull(slot))
		{
			node->nl_NeedNewOuter = true;
			continue;
		}
		econtext->ecxt_innertuple = slot;
		if (ExecQual(node->ps.qual, econtext))
			return ExecProject(node->ps.ps_ProjInfo);
	}
}

/* ---------------- sort ---------------- */

static int ssup_datum_signed_cmp(Datum x, Datum y, SortSupport ssup)
{
	int64		xx = DatumGetInt64(x), yy = DatumGetInt64(y);

	ssup->compared++;
	return xx < yy ? -1 : xx > yy ? 1 : 0;
}

static inline int ApplySortComparator(Datum datum1, bool isNull1, Datum datum2, bool isNull2, SortSupport ssup)
{
	int			compare;

	if (isNull1)
		return isNull2 ? 0 : ssup->ssup_nulls_first ? -1 : 1;
	if (isNull2)
		return ssup->ssup_nulls_first ? 1 : -1;
	compare = ssup->comparator(datum1, datum2, ssup);
	return ssup->ssup_reverse ? (compare < 0 ? 1 : -compare) : compare;
}

static Datum minimal_getattr(MinimalTuple mtup, AttrNumber attno, TupleDesc desc, bool *isnull)
{
	HeapTupleHeader tup = (HeapTupleHeader) ((char *) mtup - MINIMAL_TUPLE_OFFSET);
	char	   *tp = (char *) tup + tup->t_hoff;
	Size		off = 0;

	for (int i = 0;; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if ((tup->t_infomask & HEAP_HASNULL) && att_isnull(i, tup->t_bits))
		{
			if (i == attno - 1)
				return *isnull = true, (Datum) 0;
			continue;
		}
		off = att_align_nominal(off, att->attalign);
		if (i == attno - 1)
			return *isnull = false, fetch_att(tp + off, att->attbyval, att->attlen);
		off += att->attlen == -1 ? VARSIZE(tp + off) : (Size) att->attlen;
	}
}

static NOINLINE int comparetup_heap(const SortTuple *a, const SortTuple *b, Tuplesortstate *state)
{
	SortSupport sortKey = state->sortKeys;
	int32		compare = ApplySortComparator(a->datum1, a->isnull1, b->datum1, b->isnull1, sortKey);

	if (compare != 0)
		return compare;
	sortKey++;
	for (int nkey = 1; nkey < state->nKeys; nkey++, sortKey++)
	{
		bool		isnull1, isnull2;
		Datum		datum1 = minimal_getattr(a->tuple, sortKey->ssup_attno, state->tupDesc, &isnull1);
		Datum		datum2 = minimal_getattr(b->tuple, sortKey->ssup_attno, state->tupDesc, &isnull2);

		if ((compare = ApplySortComparator(datum1, isnull1, datum2, isnull2, sortKey)) != 0)
			return compare;
	}
	return 0;
}

#define ST_SWAP(a, b) do { SortTuple t_ = *(a); *(a) = *(b); *(b) = t_; } while (0)
static SortTuple *st_med3(SortTuple *a, SortTuple *b, SortTuple *c, Tuplesortstate *state)
{
	return state->comparetup(a, b, state) < 0 ?
		(state->comparetup(b, c, state) < 0 ? b : (state->comparetup(a, c, state) < 0 ? c : a))
		: (state->comparetup(b, c, state) > 0 ? b : (state->comparetup(a, c, state) < 0 ? a : c));
}

static NOINLINE void qsort_tuple(SortTuple *data, size_t n, Tuplesortstate *state)
{
	SortTuple  *pa, *pb, *pc, *pd, *pl, *pm, *pn;
	size_t		d1, d2;
	int			r;

loop:
	if (n < 7)
	{
		for (pm = data + 1; pm < data + n; pm++)
			for (pl = pm; pl > data && state->comparetup(pl - 1, pl, state) > 0; pl--)
				ST_SWAP(pl, pl - 1);
		return;
	}
	pm = st_med3(data, data + n / 2, data + n - 1, state);
	ST_SWAP(data, pm);
	pa = pb = data + 1;
	pc = pd = data + n - 1;
	for (;;)
	{
		while (pb <= pc && (r = state->comparetup(pb, data, state)) <= 0)
		{
			if (r == 0) { ST_SWAP(pa, pb); pa++; }
			pb++;
		}
		while (pb <= pc && (r = state->comparetup(pc, data, state)) >= 0)
		{
			if (r == 0) { ST_SWAP(pc, pd); pd--; }
			pc--;
		}
		if (pb > pc)
			break;
		ST_SWAP(pb, pc);
		pb++;
		pc--;
	}
	pn = data + n;
	d1 = pa - data < pb - pa ? pa - data : pb - pa;
	for (pl = data, pm = pb - d1; d1 > 0; d1--, pl++, pm++)
		ST_SWAP(pl, pm);
	d1 = pd - pc < pn - pd - 1 ? pd - pc : pn - pd - 1;
	for (pl = pb, pm = pn - d1; d1 > 0; d1--, pl++, pm++)
		ST_SWAP(pl, pm);
	d1 = pb - pa;
	d2 = pd - pc;
	if (d1 > 1)
		qsort_tuple(data, d1, state);
	if (d2 > 1)
	{
		data = pn - d2;
		n = d2;
		goto loop;
	}
}

static NOINLINE void tuplesort_puttupleslot(Tuplesortstate *state, TupleTableSlot *slot)
{
	SortTuple	stup;
	MemoryContext old = MemoryContextSwitchTo(state->tuplecontext);

	slot_getsomeattrs(slot, slot->tts_tupleDescriptor->natts);
	stup.tuple = heap_form_minimal_tuple(slot->tts_tupleDescriptor, slot->tts_values, slot->tts_isnull, 0);
	stup.datum1 = minimal_getattr(stup.tuple, state->sortKeys[0].ssup_attno, state->tupDesc, &stup.isnull1);
	stup.srctape = 0;
	MemoryContextSwitchTo(old);
	if (state->memtupcount >= state->memtupsize)
	{
		state->memtupsize *= 2;
		state->memtuples = repalloc_array(state->memtuples, SortTuple, state->memtupsize);
	}
	state->memtuples[state->memtupcount++] = stup;
}

static TupleTableSlot *ExecSort(PlanState *pstate)
{
	SortState  *node = (SortState *) pstate;
	Tuplesortstate *ts = node->tuplesortstate;

	if (!node->sort_Done)
	{
		for (;;)
		{
			TupleTableSlot *slot = ExecProcNode(outerPlanState(node));

			if (TupIsNull(slot))
				break;
			tuplesort_puttupleslot(ts, slot);
		}
		qsort_tuple(ts->memtuples, ts->memtupcount, ts);
		node->sort_Done = true;
	}
	if (ts->current >= ts->memtupcount)
		return NULL;
	return ExecStoreMinimalTuple(ts->memtuples[ts->current++].tuple, node->ps.ps_ResultTupleSlot);
}

/* ---------------- aggregation ---------------- */

/* simplehash */
#define SH_PREFIX tuplehash
#define SH_MAKE_NAME(name) SH_MAKE_NAME_(SH_PREFIX, name)
#define SH_MAKE_NAME_(a, b) SH_MAKE_NAME__(a, b)
#define SH_MAKE_NAME__(a, b) a##_##b
#define SH_TYPE SH_MAKE_NAME(hash)
#define SH_ELEMENT_TYPE TupleHashEntryData

static void SH_MAKE_NAME(grow) (SH_TYPE *tb, uint64 newsize)
{
	SH_ELEMENT_TYPE *olddata = tb->data, *newdata = palloc0_array(TupleHashEntryData, newsize);

	for (uint64 i = 0; i < tb->size; i++)
	{
		SH_ELEMENT_TYPE *oldentry = &olddata[i];
		uint32		curelem;

		if (oldentry->status == 0)
			continue;
		for (curelem = oldentry->hash & (newsize - 1); newdata[curelem].status != 0; curelem = (curelem + 1) & (newsize - 1));
		newdata[curelem] = *oldentry;
	}
	tb->data = newdata;
	tb->size = newsize;
	tb->sizemask = newsize - 1;
	tb->grow_threshold = newsize * 7 / 8;
}

static NOINLINE SH_ELEMENT_TYPE *SH_MAKE_NAME(insert_hash) (SH_TYPE *tb, int32 key, uint32 hash, bool *found)
{
	uint32		curelem;

	if (tb->members >= tb->grow_threshold)
		SH_MAKE_NAME(grow) (tb, tb->size * 2);
	for (curelem = hash & tb->sizemask;; curelem = (curelem + 1) & tb->sizemask)
	{
		SH_ELEMENT_TYPE *entry = &tb->data[curelem];

		if (entry->status == 0)
		{
			tb->members++;
			entry->key = key;
			entry->hash = hash;
			entry->status = 1;
			*found = false;
			return entry;
		}
		if (entry->hash == hash && entry->key == key)
		{
			*found = true;
			return entry;
		}
	}
}

static NOINLINE void initialize_aggregates(AggState *aggstate, AggStatePerGroup pergroups)
{
	int			transno = 0;
	ListCell   *lc;

	foreach(lc, aggstate->aggs)
	{
		Aggref	   *agg = lfirst(lc);
		AggStatePerGroup pergroup = &pergroups[transno++];

		pergroup->transValue = agg->initval;
		pergroup->transValueIsNull = pergroup->noTransValue = agg->initnull;
	}
}

static NOINLINE void lookup_hash_entries(AggState *aggstate, TupleTableSlot *slot)
{
	AttrNumber	col = ((Agg *) aggstate->ps.plan)->grpCol;
	TupleHashEntryData *entry;
	bool		found;
	int32		key = 0;

	if (col > 0)
	{
		slot_getsomeattrs(slot, col);
		key = DatumGetInt32(slot->tts_values[col - 1]);
	}
	entry = tuplehash_insert_hash(aggstate->hashtable, key, murmurhash32((uint32) key), &found);
	if (!found)
	{
		MemoryContext old = MemoryContextSwitchTo(aggstate->hashcontext);
		Datum		v = Int32GetDatum(key);
		bool		n = false;

		entry->firstTuple = heap_form_minimal_tuple(aggstate->hashslot->tts_tupleDescriptor, &v, &n, 0);
		entry->additional = palloc_array(AggStatePerGroupData, aggstate->numaggs);
		initialize_aggregates(aggstate, entry->additional);
		MemoryContextSwitchTo(old);
	}
	aggstate->all_pergroups = entry->additional;
}

static TupleTableSlot *ExecAgg(PlanState *pstate)
{
	AggState   *node = (AggState *) pstate;
	ExprContext *econtext = node->ps.ps_ExprContext;
	TupleTableSlot *result = node->ps.ps_ResultTupleSlot;
	bool		isnull;

	if (!node->table_filled)
	{
		for (;;)
		{
			TupleTableSlot *slot = ExecProcNode(outerPlanState(node));

			if (TupIsNull(slot))
				break;
			econtext->ecxt_outertuple = slot;
			lookup_hash_entries(node, slot);
			node->phase->evalfunc(node->phase, econtext, &isnull);
		}
		node->table_filled = true;
	}
	while (node->hash_iter < node->hashtable->size)
	{
		TupleHashEntryData *entry = &node->hashtable->data[node->hash_iter++];

		if (entry->status == 0)
			continue;
		ExecStoreMinimalTuple(entry->firstTuple, node->hashslot);
		slot_getsomeattrs(node->hashslot, 1);
		ExecClearTuple(result);
		result->tts_values[0] = node->hashslot->tts_values[0];
		result->tts_isnull[0] = false;
		for (int i = 0; i < node->numaggs; i++)
		{
			result->tts_values[i + 1] = entry->additional[i].transValue;
			result->tts_isnull[i + 1] = entry->additional[i].transValueIsNull;
		}
		result->tts_nvalid = node->numaggs + 1;
		result->tts_flags &= ~TTS_FLAG_EMPTY;
		return result;
	}
	return NULL;
}

static TupleTableSlot *ExecLimit(PlanState *pstate)
{
	LimitState *node = (LimitState *) pstate;

	if (node->position >= node->count)
		return NULL;
	node->position++;
	return ExecProcNode(outerPlanState(node));
}

/* ---------------- executor start ---------------- */

static TupleTableSlot *ExecProcNodeInstr(PlanState *node)
{
	TupleTableSlot *result;

	node->instrument->running = true;
	result = node->ExecProcNodeReal(node);
	if (!TupIsNull(result))
		node->instrument->ntuples += 1.0;
	return result;
}

static TupleTableSlot *ExecProcNodeFirst(PlanState *node)
{
	node->ExecProcNode = node->instrument ? ExecProcNodeInstr : node->ExecProcNodeReal;
	node->instrument->nloops += 1;
	return node->ExecProcNode(node);
}

static TupleDesc ExecTypeFromTL(List *targetList)
{
	Oid			types[16];
	int			n = 0;
	ListCell   *lc;

	foreach(lc, targetList)
		types[n++] = ((TargetEntry *) lfirst(lc))->restype;
	return CreateTemplateTupleDesc(n, types, NULL);
}

static ExprState *ExecBuildAggTrans(AggState *aggstate)
{
	ExprState  *state = makeNode(ExprState);
	ExprEvalStep scratch = {0};
	ListCell   *lc;

	ExecCreateExprSetupSteps(state, (Node *) aggstate->aggs);
	foreach(lc, aggstate->aggs)
	{
		Aggref	   *agg = lfirst(lc);
		FunctionCallInfo fcinfo = palloc_flex(FunctionCallInfoBaseData, SizeForFunctionCallInfo(2));

		fcinfo->flinfo = &fmgr_builtins[agg->aggfnoid];
		fcinfo->nargs = 2;
		fcinfo->args[1].isnull = false;
		if (agg->args)
			ExecInitExprRec(list_nth(agg->args, 0), state, &fcinfo->args[1].value, &fcinfo->args[1].isnull);
		scratch.opcode = EEOP_AGG_TRANS;
		scratch.d.agg_trans.aggstate = aggstate;
		scratch.d.agg_trans.fcinfo_data = fcinfo;
		scratch.d.agg_trans.transno = agg->aggno;
		ExprEvalPushStep(state, &scratch);
	}
	ExecReadyExpr(state);
	return state;
}

static PlanState *ExecInitNode(Plan *node, EState *estate)
{
	PlanState  *ps = NULL, *outer = NULL, *inner = NULL;
	ExecProcNodeMtd mtd = NULL;

	if (node->lefttree)
		outer = ExecInitNode(node->lefttree, estate);
	if (node->righttree)
		inner = ExecInitNode(node->righttree, estate);
	switch (nodeTag(node))
	{
		case T_SeqScan: ps = (PlanState *) makeNode(SeqScanState); mtd = ExecSeqScan; break;
		case T_IndexScan: ps = (PlanState *) makeNode(IndexScanState); mtd = ExecIndexScan; break;
		case T_HashJoin: ps = (PlanState *) makeNode(HashJoinState); mtd = ExecHashJoin; break;
		case T_Hash: ps = (PlanState *) makeNode(HashState); break;
		case T_NestLoop: ps = (PlanState *) makeNode(NestLoopState); mtd = ExecNestLoop; break;
		case T_Sort: ps = (PlanState *) makeNode(SortState); mtd = ExecSort; break;
		case T_Agg: ps = (PlanState *) makeNode(AggState); mtd = ExecAgg; break;
		case T_Limit: ps = (PlanState *) makeNode(LimitState); mtd = ExecLimit; break;
		default: abort();
	}
	ps->plan = node;
	ps->state = estate;
	ps->lefttree = outer;
	ps->righttree = inner;
	ps->ExecProcNodeReal = mtd;
	ps->ExecProcNode = ExecProcNodeFirst;
	ps->instrument = palloc0_object(Instrumentation);
	ps->ps_ExprContext = makeNode(ExprContext);
	ps->ps_ExprContext->ecxt_estate = estate;
	ps->ps_ExprContext->ecxt_params = estate->es_param_exec_vals;
	ps->ps_ExprContext->ecxt_per_tuple_memory = AllocSetContextCreate(estate->es_query_cxt, "ExprContext");
	estate->es_exprcontexts = lappend(estate->es_exprcontexts, ps->ps_ExprContext);
	ps->qual = ExecInitQual(node->qual);
	ps->scandesc = node->targetlist ? ExecTypeFromTL(node->targetlist) : outer ? outer->scandesc : NULL;
	if (node->targetlist)
	{
		ps->ps_ResultTupleSlot = MakeTupleTableSlot(ps->scandesc, &TTSOpsVirtual);
		if (!IsA(node, Agg))
			ps->ps_ProjInfo = ExecBuildProjectionInfo(node->targetlist, ps->ps_ExprContext, ps->ps_ResultTupleSlot);
	}
	switch (nodeTag(node))
	{
		case T_SeqScan:
		case T_IndexScan:
			{
				ScanState  *ss = (ScanState *) ps;

				ss->ss_currentRelation = ((SeqScan *) node)->rel;
				ss->ss_ScanTupleSlot = MakeTupleTableSlot(ss->ss_currentRelation->rd_att, &TTSOpsBufferHeapTuple);
				estate->es_tupleTable = lappend(estate->es_tupleTable, ss->ss_ScanTupleSlot);
				if (!node->targetlist)
					ps->scandesc = ss->ss_currentRelation->rd_att;
				if (IsA(node, IndexScan))
				{
					IndexScanState *is = (IndexScanState *) ps;

					is->iss_index = ((IndexScan *) node)->index;
					is->iss_key = ExecInitExpr(((IndexScan *) node)->key);
					is->so = palloc0_object(BTScanOpaqueData);
					is->cmp = palloc_flex(FunctionCallInfoBaseData, SizeForFunctionCallInfo(2));
					is->cmp->flinfo = &fmgr_builtins[F_BTINT4CMP];
				}
				break;
			}
		case T_HashJoin:
			{
				HashJoinState *hj = (HashJoinState *) ps;
				HashState  *hs = (HashState *) inner;
				HashJoinTable ht = palloc0_object(HashJoinTableData);

				ht->log2_nbuckets = 8;
				ht->nbuckets = 1 << ht->log2_nbuckets;
				ht->buckets = palloc0_array(HashJoinTuple, ht->nbuckets);
				ht->hashCxt = AllocSetContextCreate(estate->es_query_cxt, "HashTableContext");
				hs->hashtable = hj->hj_HashTable = ht;
				hs->hashkey = ExecInitExpr(((HashJoin *) node)->innerkey);
				hj->outerkey = ExecInitExpr(((HashJoin *) node)->outerkey);
				hj->hashclauses = ExecInitQual(((HashJoin *) node)->hashclauses);
				hj->hj_JoinState = HJ_BUILD_HASHTABLE;
				hj->hj_HashTupleSlot = MakeTupleTableSlot(inner->scandesc, &TTSOpsMinimalTuple);
				break;
			}
		case T_NestLoop:
			((NestLoopState *) ps)->nl_NeedNewOuter = true;
			break;
		case T_Sort:
			{
				Tuplesortstate *ts = palloc0_object(Tuplesortstate);
				Sort	   *sort = (Sort *) node;

				ts->nKeys = sort->numCols;
				ts->sortKeys = palloc0_array(SortSupportData, ts->nKeys);
				for (int i = 0; i < ts->nKeys; i++)
				{
					SortSupport key = &ts->sortKeys[i];

					key->ssup_attno = sort->sortColIdx[i];
					key->ssup_reverse = sort->reverse[i];
					key->comparator = ssup_datum_signed_cmp;
				}
				ts->tupDesc = outer->scandesc;
				ts->memtupsize = 64;
				ts->memtuples = palloc_array(SortTuple, ts->memtupsize);
				ts->comparetup = comparetup_heap;
				ts->tuplecontext = AllocSetContextCreate(estate->es_query_cxt, "TupleSort");
				((SortState *) ps)->tuplesortstate = ts;
				ps->ps_ResultTupleSlot = MakeTupleTableSlot(ts->tupDesc, &TTSOpsMinimalTuple);
				break;
			}
		case T_Agg:
			{
				AggState   *as = (AggState *) ps;
				Oid			keytype = INT4OID;

				as->aggs = ((Agg *) node)->aggs;
				as->numaggs = list_length(as->aggs);
				as->hashcontext = AllocSetContextCreate(estate->es_query_cxt, "HashAgg");
				as->hashtable = palloc0_object(tuplehash_hash);
				tuplehash_grow(as->hashtable, 8);
				as->hashslot = MakeTupleTableSlot(CreateTemplateTupleDesc(1, &keytype, NULL), &TTSOpsMinimalTuple);
				as->phase = ExecBuildAggTrans(as);
				break;
			}
		case T_Limit:
			((LimitState *) ps)->count = ((Limit *) node)->count;
			break;
		default:
			break;
	}
	return ps;
}

typedef struct DestReceiver { bool (*receiveSlot) (TupleTableSlot *slot, struct DestReceiver *self); uint64 checksum, rows; } DestReceiver;

static bool checksum_receive(TupleTableSlot *slot, DestReceiver *self)
{
	TupleDesc	desc = slot->tts_tupleDescriptor;

	slot_getsomeattrs(slot, desc->natts);
	for (int i = 0; i < desc->natts; i++)
		if (!slot->tts_isnull[i] && TupleDescAttr(desc, i)->attbyval)
			self->checksum = self->checksum * 1000003 + slot->tts_values[i];
	self->rows++;
	return true;
}

static NOINLINE void ExecutePlan(Plan *plan, MemoryContext query, DestReceiver *dest)
{
	EState	   *estate = makeNode(EState);
	PlanState  *planstate;
	ListCell   *lc;

	estate->es_query_cxt = query;
	estate->es_param_exec_vals = palloc0_array(ParamExecData, 4);
	planstate = ExecInitNode(plan, estate);
	for (;;)
	{
		TupleTableSlot *slot = ExecProcNode(planstate);

		if (TupIsNull(slot))
			break;
		dest->receiveSlot(slot, dest);
		estate->es_processed++;
	}
	foreach(lc, estate->es_tupleTable)
	{
		TupleTableSlot *slot = lfirst(lc);

		ExecClearTuple(slot);
	}
	/* a scan that a LIMIT cut short still holds its buffer */
	for (PlanState *p = planstate; p; p = p->lefttree)
		if (IsA(p, SeqScanState) && ((SeqScanState *) p)->scandesc)
			ReleaseBuffer(((SeqScanState *) p)->scandesc->rs_cbuf);
}

/* ---------------- the "planner" ---------------- */

static Expr *makeVar(int varno, int attno, Oid type) { Var *v = makeNode(Var); v->varno = varno, v->varattno = attno, v->vartype = type; return (Expr *) v; }
static Expr *makeConst(Oid type, Datum value) { Const *c = makeNode(Const); c->consttype = type, c->constvalue = value; return (Expr *) c; }
static Expr *make_opclause(int fn, Expr *l, Expr *r) { OpExpr *o = makeNode(OpExpr); o->opfuncid = fn, o->args = list_make2(l, r); return (Expr *) o; }
static Expr *makeBoolExpr(BoolExprType op, List *args) { BoolExpr *b = makeNode(BoolExpr); b->boolop = op, b->args = args; return (Expr *) b; }
static TargetEntry *makeTargetEntry(Expr *e, int resno, Oid type) { TargetEntry *t = makeNode(TargetEntry); t->expr = e, t->resno = resno, t->restype = type; return t; }
static Aggref *makeAggref(int fn, Expr *arg, int no, Datum init, bool initnull) { Aggref *a = makeNode(Aggref); a->aggfnoid = fn, a->args = arg ? list_make1(arg) : NIL, a->aggno = no, a->initval = init, a->initnull = initnull; return a; }
static Plan *make_sort(Plan *left, int n, const AttrNumber *cols, const bool *rev)
{
	Sort	   *s = makeNode(Sort);

	s->plan.lefttree = left, s->numCols = n;
	s->sortColIdx = palloc_array(AttrNumber, n), s->reverse = palloc_array(bool, n);
	for (int i = 0; i < n; i++)
		s->sortColIdx[i] = cols[i], s->reverse[i] = rev[i];
	return (Plan *) s;
}

/* orders: id int4, cust int4, amount int8, prio int2, note text null, qty int4 null; customers: id int4, region int4, name text null, credit int8 null */
#define ORDERS (&relcache[0])
#define CUSTOMERS (&relcache[1])
#define ORDERS_CUST_IDX (&relcache[2])
#define NORDERS 4000
#define NCUST 500
static const AttrNumber sortcols[] = {1, 2, 3};
static const bool sortrev[] = {false, false, true}, sortdesc[] = {true, false, false};
static const char *const words[] = {"pending", "shipped", "returned", "lost in transit", "paid", "on hold"};

/* SELECT region, count(*), sum(amount), max(amount) FROM orders JOIN customers ON cust = c.id WHERE amount > $1 AND prio <> 3 GROUP BY region ORDER BY region */
static Plan *plan_query1(int64 arg)
{
	SeqScan    *o = makeNode(SeqScan), *c = makeNode(SeqScan);
	Hash	   *h = makeNode(Hash);
	HashJoin   *j = makeNode(HashJoin);
	Agg		   *a = makeNode(Agg);

	o->rel = ORDERS, c->rel = CUSTOMERS;
	o->plan.qual = list_make2(make_opclause(F_INT8GT, makeVar(1, 3, INT8OID), makeConst(INT8OID, Int64GetDatum(arg))), make_opclause(F_INT4NE, makeVar(1, 4, INT2OID), makeConst(INT4OID, 3)));
	h->plan.lefttree = (Plan *) c;
	j->plan.lefttree = (Plan *) o, j->plan.righttree = (Plan *) h;
	j->outerkey = makeVar(OUTER_VAR, 2, INT4OID), j->innerkey = makeVar(OUTER_VAR, 1, INT4OID);
	j->hashclauses = list_make1(make_opclause(F_INT4EQ, makeVar(OUTER_VAR, 2, INT4OID), makeVar(INNER_VAR, 1, INT4OID)));
	j->plan.targetlist = list_make2(makeTargetEntry(makeVar(INNER_VAR, 2, INT4OID), 1, INT4OID), makeTargetEntry(makeVar(OUTER_VAR, 3, INT8OID), 2, INT8OID));
	a->plan.lefttree = (Plan *) j, a->grpCol = 1;
	a->aggs = list_make3(makeAggref(F_INT8INC, NULL, 0, 0, false), makeAggref(F_INT8PL, makeVar(OUTER_VAR, 2, INT8OID), 1, 0, true), makeAggref(F_INT8LARGER, makeVar(OUTER_VAR, 2, INT8OID), 2, 0, true));
	a->plan.targetlist = lappend(list_make3(makeTargetEntry(NULL, 1, INT4OID), makeTargetEntry(NULL, 2, INT8OID), makeTargetEntry(NULL, 3, INT8OID)), makeTargetEntry(NULL, 4, INT8OID));
	return make_sort((Plan *) a, 1, sortcols, sortrev);
}

/* SELECT amount, id, amount + id FROM orders WHERE (note = $2 OR amount + id < $1) AND qty IS NOT NULL ORDER BY amount DESC, id LIMIT 200 */
static Plan *plan_query2(int64 arg, text *note)
{
	SeqScan    *o = makeNode(SeqScan);
	Limit	   *l = makeNode(Limit);
	NullTest   *nt = makeNode(NullTest);
	Expr	   *sum = make_opclause(F_INT8PL, makeVar(1, 3, INT8OID), makeVar(1, 1, INT4OID));

	nt->arg = makeVar(1, 6, INT4OID), nt->isnotnull = true;
	o->rel = ORDERS;
	o->plan.qual = list_make2(makeBoolExpr(OR_EXPR, list_make2(make_opclause(F_TEXTEQ, makeVar(1, 5, TEXTOID), makeConst(TEXTOID, PointerGetDatum(note))), make_opclause(F_INT8LT, sum, makeConst(INT8OID, arg)))), nt);
	o->plan.targetlist = list_make3(makeTargetEntry(makeVar(1, 3, INT8OID), 1, INT8OID), makeTargetEntry(makeVar(1, 1, INT4OID), 2, INT4OID), makeTargetEntry(sum, 3, INT8OID));
	l->plan.lefttree = make_sort((Plan *) o, 2, sortcols, sortdesc), l->count = 200;
	return (Plan *) l;
}

/* SELECT sum(o.amount + c.credit), count(*) FROM customers c JOIN orders o ON o.cust = c.id WHERE region = $1 and nested loop */
static Plan *plan_query3(int32 region)
{
	SeqScan    *c = makeNode(SeqScan);
	IndexScan  *i = makeNode(IndexScan);
	NestLoop   *n = makeNode(NestLoop);
	Agg		   *a = makeNode(Agg);
	Param	   *p = makeNode(Param);

	p->paramid = 1;
	c->rel = CUSTOMERS;
	c->plan.qual = list_make1(makeBoolExpr(NOT_EXPR, list_make1(make_opclause(F_INT4NE, makeVar(1, 2, INT4OID), makeConst(INT4OID, region)))));
	i->rel = ORDERS, i->index = ORDERS_CUST_IDX, i->key = (Expr *) p;
	n->plan.lefttree = (Plan *) c, n->plan.righttree = (Plan *) i;
	n->paramno = 1, n->paramattr = 1;
	n->plan.targetlist = list_make1(makeTargetEntry(make_opclause(F_INT8PL, makeVar(INNER_VAR, 3, INT8OID), makeVar(OUTER_VAR, 4, INT8OID)), 1, INT8OID));
	a->plan.lefttree = (Plan *) n;
	a->aggs = list_make2(makeAggref(F_INT8PL, makeVar(OUTER_VAR, 1, INT8OID), 0, 0, true), makeAggref(F_INT8INC, NULL, 1, 0, false));
	a->plan.targetlist = list_make3(makeTargetEntry(NULL, 1, INT4OID), makeTargetEntry(NULL, 2, INT8OID), makeTargetEntry(NULL, 3, INT8OID));
	return (Plan *) a;
}

/* In-place maintenance: forget the hint bits of one relation, and count what it keeps. */
typedef struct LVRelState { uint64 scanned_pages, live_tuples, nulls; uint32 linp_hist[16]; } LVRelState;
static LVRelState vacrel;

static NOINLINE void lazy_scan_heap(Relation rel)
{
	for (BlockNumber blk = 0; blk < rel->rd_nblocks; blk++)
	{
		Buffer		buf = ReadBuffer(rel, blk);
		Page		page = BufferGetPage(buf);
		OffsetNumber maxoff = PageGetMaxOffsetNumber(page);

		vacrel.scanned_pages++;
		for (OffsetNumber off = 1; off <= maxoff; off++)
		{
			ItemId		itemid = PageGetItemId(page, off);
			HeapTupleHeader htup = PageGetItem(page, itemid);

			vacrel.linp_hist[(itemid->lp_len >> 3) & 15]++;
			if (htup->t_infomask & HEAP_HASNULL)
				vacrel.nulls += att_isnull((int) (htup->t_infomask2 & HEAP_NATTS_MASK) - 1, htup->t_bits);
			htup->t_infomask &= ~HEAP_XMIN_COMMITTED;
			htup->t_choice.t_heap.t_field3.t_cid ^= off;
			vacrel.live_tuples++;
		}
		((PageHeader) page)->pd_lsn += maxoff;
		((PageHeader) page)->pd_prune_xid = 0;
		GetBufferDescriptor(buf - 1)->state |= BM_DIRTY;
		ReleaseBuffer(buf);
	}
}

/* ---------------- loading ---------------- */

static struct { int32 id, cust, qty; int64 amount; int16 prio; int note; bool qtynull; } raw_orders[NORDERS];
static struct { int32 region; int64 credit; bool creditnull; } raw_cust[NCUST];
static int raw_by_cust[NORDERS];

static text *make_text(const char *s)
{
	text	   *t = palloc_flex(text, 32);

	SET_VARSIZE(t, 4 + strlen(s));
	memcpy(VARDATA(t), s, strlen(s));
	return t;
}

static void heap_insert(Relation rel, const Datum *values, const bool *isnull, ItemPointer tid)
{
	char		buf[512] __attribute__((aligned(8)));
	HeapTupleHeader td = (HeapTupleHeader) buf;
	bool		hasnull = has_nulls(rel->rd_att, isnull);
	Size		hoff = MAXALIGN(SizeofHeapTupleHeader + (hasnull ? (rel->rd_att->natts + 7) / 8 : 0)), len = hoff + heap_compute_data_size(rel->rd_att, values, isnull);
	OffsetNumber off;

	memset(buf, 0, sizeof(buf));
	td->t_choice.t_heap.t_xmin = 700 + rel->rd_nblocks;
	td->t_infomask2 = rel->rd_att->natts;
	td->t_infomask = HEAP_XMAX_INVALID;
	td->t_hoff = hoff;
	heap_fill_tuple(rel->rd_att, values, isnull, buf + hoff, &td->t_infomask, hasnull ? td->t_bits : NULL);
	if (rel->rd_nblocks == 0 || (off = PageAddItem(rel->rd_smgr[rel->rd_nblocks - 1], td, len)) == 0)
		off = PageAddItem(extend_relation(rel, 0), td, len);
	ItemPointerSet(tid, rel->rd_nblocks - 1, off);
}

static ItemPointerData raw_tids[NORDERS];
static int cmp_cust(const void *a, const void *b) { int x = *(const int *) a, y = *(const int *) b; return raw_orders[x].cust != raw_orders[y].cust ? raw_orders[x].cust - raw_orders[y].cust : x - y; }

static void load(void)
{
	static const Oid otypes[] = {INT4OID, INT4OID, INT8OID, INT2OID, TEXTOID, INT4OID}, ctypes[] = {INT4OID, INT4OID, TEXTOID, INT8OID};
	static const char *const onames[] = {"id", "cust", "amount", "prio", "note", "qty"}, *const cnames[] = {"id", "region", "name", "credit"};
	ItemPointerData tid;
	struct { IndexTupleData itup; int32 key; int32 pad; } it = {{{{0, 0}, 0}, 16}, 0, 0};
	int32		lowkey[64];

	for (int i = 0; i < 3; i++)
	{
		relcache[i].rd_id = 16384 + i;
		relcache[i].rd_smgr = palloc0_array(Page, 128);
		snprintf(relcache[i].rd_name.data, NAMEDATALEN, "%s", i == 0 ? "orders" : i == 1 ? "customers" : "orders_cust_idx");
	}
	ORDERS->rd_att = CreateTemplateTupleDesc(6, otypes, onames);
	CUSTOMERS->rd_att = CreateTemplateTupleDesc(4, ctypes, cnames);
	for (int i = 0; i < NCUST; i++)
	{
		char		name[32];
		raw_cust[i].region = tr_rand() % 23, raw_cust[i].credit = (int64) (tr_rand() % 9000) - 2000, raw_cust[i].creditnull = tr_rand() % 7 == 0;
		snprintf(name, sizeof(name), "customer %d", i * 37 % 1000);
		Datum		v[] = {Int32GetDatum(i), Int32GetDatum(raw_cust[i].region), PointerGetDatum(make_text(name)), Int64GetDatum(raw_cust[i].credit)};
		bool		n[] = {false, false, i % 11 == 0, raw_cust[i].creditnull};

		heap_insert(CUSTOMERS, v, n, &tid);
	}
	for (int i = 0; i < NORDERS; i++)
	{
		raw_orders[i].id = i, raw_orders[i].cust = tr_rand() % (NCUST + 20), raw_orders[i].amount = tr_rand() % 2000, raw_orders[i].prio = tr_rand() % 5, raw_orders[i].note = (int) (tr_rand() % 7) - 1, raw_orders[i].qty = tr_rand() % 50, raw_orders[i].qtynull = tr_rand() % 9 == 0;
		Datum		v[] = {Int32GetDatum(i), Int32GetDatum(raw_orders[i].cust), Int64GetDatum(raw_orders[i].amount), (Datum) raw_orders[i].prio, raw_orders[i].note < 0 ? 0 : PointerGetDatum(make_text(words[raw_orders[i].note])), Int32GetDatum(raw_orders[i].qty)};
		bool		n[] = {false, false, false, false, raw_orders[i].note < 0, raw_orders[i].qtynull};

		heap_insert(ORDERS, v, n, &raw_tids[i]);
		raw_by_cust[i] = i;
	}
	qsort(raw_by_cust, NORDERS, sizeof(int), cmp_cust);
	for (int i = 0; i < NORDERS;)
	{
		Page		page = extend_relation(ORDERS_CUST_IDX, sizeof(BTPageOpaqueData));
		BTPageOpaque o = BTPageGetOpaque(page);
		BlockNumber b = ORDERS_CUST_IDX->rd_nblocks - 1;

		o->btpo_prev = b ? b - 1 : InvalidBlockNumber;
		o->btpo_level = 0;
		lowkey[b] = raw_orders[raw_by_cust[i]].cust;
		for (int k = 0; k < 300 && i < NORDERS; k++, i++)
		{
			it.itup.t_tid = raw_tids[raw_by_cust[i]];
			it.key = raw_orders[raw_by_cust[i]].cust;
			Assert(PageAddItem(page, &it, 16));
		}
		o->btpo_next = i < NORDERS ? b + 1 : InvalidBlockNumber;
	}
	BlockNumber leaves = ORDERS_CUST_IDX->rd_nblocks;
	Page		root = extend_relation(ORDERS_CUST_IDX, sizeof(BTPageOpaqueData));

	BTPageGetOpaque(root)->btpo_level = 1;
	BTPageGetOpaque(root)->btpo_next = BTPageGetOpaque(root)->btpo_prev = InvalidBlockNumber;
	for (BlockNumber b = 0; b < leaves; b++)
	{
		ItemPointerSet(&it.itup.t_tid, b, 1);
		it.key = lowkey[b];
		PageAddItem(root, &it, 16);
	}
	announce_pages(ORDERS, "HeapTupleHeaderData");
	announce_pages(CUSTOMERS, "HeapTupleHeaderData");
	announce_pages(ORDERS_CUST_IDX, "IndexTupleData");
}

/* what the queries must say, from the plain arrays */
static uint64 mix(uint64 s, int64 v) { return s * 1000003 + (uint64) v; }
static int cmp_q2(const void *a, const void *b) { int x = *(const int *) a, y = *(const int *) b; return raw_orders[x].amount != raw_orders[y].amount ? (raw_orders[x].amount < raw_orders[y].amount ? 1 : -1) : x - y; }
static uint64 expect(int q, int p)
{
	uint64		s = 0;

	if (q == 0)
		for (int r = 0; r < 23; r++)
		{
			int64		n = 0, sum = 0, max = 0;

			for (int i = 0; i < NORDERS; i++)
				if (raw_orders[i].amount > 300 * p && raw_orders[i].prio != 3 && raw_orders[i].cust < NCUST && raw_cust[raw_orders[i].cust].region == r)
					n++, sum += raw_orders[i].amount, max = max > raw_orders[i].amount ? max : raw_orders[i].amount;
			if (n)
				s = mix(mix(mix(mix(s, r), n), sum), max);
		}
	else if (q == 1)
	{
		static int	hit[NORDERS];
		int			n = 0;

		for (int i = 0; i < NORDERS; i++)
			if ((raw_orders[i].note == p || raw_orders[i].amount + i < 400 * p) && !raw_orders[i].qtynull)
				hit[n++] = i;
		qsort(hit, n, sizeof(int), cmp_q2);
		for (int k = 0; k < n && k < 200; k++)
			s = mix(mix(mix(s, raw_orders[hit[k]].amount), hit[k]), raw_orders[hit[k]].amount + hit[k]);
	}
	else
	{
		int64		sum = 0, n = 0;

		for (int i = 0; i < NORDERS; i++)
			if (raw_orders[i].cust < NCUST && raw_cust[raw_orders[i].cust].region % 23 == p * 3)
				sum += raw_cust[raw_orders[i].cust].creditnull ? 0 : raw_orders[i].amount + raw_cust[raw_orders[i].cust].credit, n++;
		s = mix(mix(mix(s, 0), sum), n);
	}
	return s;
}

int main(int argc, char **argv)
{
	DestReceiver dest = {checksum_receive, 0, 0};
	uint64		expected[3][6];
	text	   *notes[6];
	int			rounds = 0;

	tr_init(argc, argv);
	TR_GLOBAL(BufferDescriptors, "BufferDescPadded []");
	TR_GLOBAL(BufferBlocks, "Page []");
	TR_GLOBAL(StrategyControl, "struct BufferStrategyControl");
	TR_GLOBAL(pgBufferUsage, "struct BufferUsage");
	TR_GLOBAL(fmgr_builtins, "FmgrInfo []");
	TR_GLOBAL(relcache, "RelationData []");
	TR_GLOBAL(CurrentMemoryContext, "MemoryContext");
	TR_GLOBAL(SharedBufHash, "HTAB *");
	TR_GLOBAL(chunk_kinds, "ChunkKind *[]");
	TR_GLOBAL(chunk_stats, "uint64 []");
	TR_GLOBAL(vacrel, "LVRelState");
	TR_GLOBAL(TTSOpsVirtual, "TupleTableSlotOps");
	TR_GLOBAL(TTSOpsBufferHeapTuple, "TupleTableSlotOps");
	TR_GLOBAL(TTSOpsMinimalTuple, "TupleTableSlotOps");
	TR_LOCAL(dest, "DestReceiver");
	TR_LOCAL(expected, "uint64 []");
	TR_CHECK(ExprEvalStep, d);
	TR_CHECK(TupleTableSlot, tts_values);
	TR_CHECK(HeapTupleHeaderData, t_infomask);
	TR_CHECK(BufferDesc, freeNext);
	TopMemoryContext = CurrentMemoryContext = AllocSetContextCreate(NULL, "TopMemoryContext");
	SharedBufHash = palloc0_object(HTAB);
	SharedBufHash->mask = 63, SharedBufHash->keysize = sizeof(BufferTag), SharedBufHash->match = tag_match;
	SharedBufHash->dir = palloc0_array(HASHELEMENT *, 64);
	for (int i = 0; i < NBuffers + 4; i++)
	{
		HASHELEMENT *e = AllocSetAlloc(CurrentMemoryContext, "HASHELEMENT", 0, "BufferLookupEnt", MAXALIGN(sizeof(HASHELEMENT)), MAXALIGN(sizeof(HASHELEMENT)) + sizeof(BufferLookupEnt));

		e->link = SharedBufHash->freeList, SharedBufHash->freeList = e;
	}
	for (int i = 0; i < NBuffers; i++)
		GetBufferDescriptor(i)->buf_id = i, GetBufferDescriptor(i)->freeNext = i + 1 < NBuffers ? i + 1 : -1;
	load();
	for (int p = 0; p < 6; p++)
	{
		notes[p] = make_text(words[p]);
		for (int q = 0; q < 3; q++)
			expected[q][p] = expect(q, p);
	}
	while (tr_more())
	{
		int			p = rounds % 6;

		for (int q = 0; q < 3; q++)
			for (int rep = 0; rep < (q == 2 ? 6 : 1); rep++)
			{
				MemoryContext query = AllocSetContextCreate(TopMemoryContext, "ExecutorState"), old = MemoryContextSwitchTo(query);
				int			a = q == 2 ? (p + rep) % 6 : p;

				dest.checksum = 0;
				ExecutePlan(q == 0 ? plan_query1(300 * a) : q == 1 ? plan_query2(400 * a, notes[a]) : plan_query3(a * 3), query, &dest);
				MemoryContextSwitchTo(old);
				MemoryContextDelete(query);
				if (dest.checksum != expected[q][a])
				{
					fprintf(stderr, "query %d arg %d: got %lx, expected %lx\n", q, a, dest.checksum, expected[q][a]);
					abort();
				}
			}
		lazy_scan_heap(rounds & 1 ? CUSTOMERS : ORDERS);
		rounds++;
	}
	for (int i = 0; i < NBuffers; i++)
		Assert(BUF_STATE_GET_REFCOUNT(GetBufferDescriptor(i)->state) == 0);
	if (getenv("SHOW"))
		fprintf(stderr, "rounds %d rows %lu hit %ld read %ld passes %u chunks %lu of %lu blocks %u %u %u\n", rounds, dest.rows, pgBufferUsage.shared_blks_hit, pgBufferUsage.shared_blks_read, StrategyControl.completePasses, chunk_stats[0], chunk_stats[1], ORDERS->rd_nblocks, CUSTOMERS->rd_nblocks, ORDERS_CUST_IDX->rd_nblocks);
	tr_sink = dest.rows;
	return 0;
}
