/** @file transport.cpp A map of tiles with towns, industries and vehicles that carry cargo between stations. */

#include "../heap.hpp"
#include <algorithm>
#include <list>
#include <map>
#include <set>
#include <vector>

typedef unsigned int uint;
typedef unsigned char byte;
typedef uint TileIndex;
typedef unsigned short StationID;
typedef long Money;

template <typename T> using Vector = std::vector<T, heap::Alloc<T>>;

static const uint MAP_LOG = 6;
static const uint MAP_SIZE = 1 << (2 * MAP_LOG);
static const uint MAP_MASK = (1 << MAP_LOG) - 1;
static const TileIndex INVALID_TILE = ~0u;
static const uint NUM_CARGO = 4;

enum TileType : byte { MP_CLEAR, MP_ROAD, MP_HOUSE, MP_INDUSTRY, MP_STATION, MP_WATER };
enum CargoID : byte { CT_PASSENGERS, CT_COAL, CT_MAIL, CT_GOODS };

static inline uint TileX(TileIndex tile) { return tile & MAP_MASK; }
static inline uint TileY(TileIndex tile) { return tile >> MAP_LOG; }
static inline uint DistanceManhattan(TileIndex a, TileIndex b) { return abs((int)TileX(a) - (int)TileX(b)) + abs((int)TileY(a) - (int)TileY(b)); }

struct Tile {
	byte type_height; ///< The type (bits 4..7) and the height
	byte m1;          ///< Owner
	unsigned short m2; ///< Index of the town, industry or station
	byte m3, m4, m5, m6;
};

static Tile *_m;
static uint _tick_counter;
static int _tile_dir[4] = { 1, 1 << MAP_LOG, -1, -(1 << MAP_LOG) };

static inline TileType GetTileType(TileIndex tile) { return (TileType)(_m[tile].type_height >> 4); }
static inline uint TileHeight(TileIndex tile) { return _m[tile].type_height & 15; }
static inline void SetTileType(TileIndex tile, TileType type) { _m[tile].type_height = (byte)(TileHeight(tile) | type << 4); }

/* ---- Pools ---- */

struct PoolBase {
	const char *name;
	size_t items, first_free, first_unused;
	PoolBase *next_pool;
	static PoolBase *first_pool;
	explicit PoolBase(const char *name) : name(name), items(0), first_free(0), first_unused(0), next_pool(first_pool) { first_pool = this; }
	virtual ~PoolBase() {}
	virtual void CleanPool() = 0;
};
PoolBase *PoolBase::first_pool;

template <class Titem, int Tmax>
struct ItemPool : PoolBase {
	Titem *data[Tmax];

	explicit ItemPool(const char *name) : PoolBase(name), data() {}
	Titem *Get(size_t index) { return this->data[index]; }
	void *GetNew(size_t size)
	{
		size_t index = this->first_free;
		while (index < this->first_unused && this->data[index] != nullptr) index++;
		if (index >= (size_t)Tmax) abort();
		this->first_free = index + 1;
		this->first_unused = std::max(this->first_unused, index + 1);
		this->items++;
		Titem *item = static_cast<Titem *>(heap_take_zeroed(heap::name_of<Titem>(), size, size));
		this->data[index] = item;
		this->new_index = index;
		return item;
	}
	void FreeItem(size_t index)
	{
		heap_give_back(this->data[index]);
		this->data[index] = nullptr;
		this->first_free = std::min(this->first_free, index);
		this->items--;
	}
	void CleanPool() override { for (size_t i = 0; i < this->first_unused; i++) if (this->data[i] != nullptr) this->FreeItem(i); }
	size_t new_index = 0;
};

#define FOR_ALL(Type, var, pool) for (size_t var##_i = 0; var##_i < pool.first_unused; var##_i++) if (Type *var = pool.Get(var##_i))

/* ---- Cargo ---- */

struct CargoPacket {
	Money feeder_share;
	uint count;
	byte days_in_transit;
	StationID source;
	TileIndex source_xy;

	bool Merges(const CargoPacket &cp) const { return this->source == cp.source && this->days_in_transit == cp.days_in_transit; }
};

typedef std::list<CargoPacket, heap::Alloc<CargoPacket>> CargoPacketList;

struct CargoList {
	uint count = 0;
	uint cargo_days_in_transit = 0;
	CargoPacketList packets;

	void Append(const CargoPacket &cp)
	{
		this->count += cp.count;
		this->cargo_days_in_transit += cp.days_in_transit * cp.count;
		for (auto it = this->packets.rbegin(); it != this->packets.rend(); ++it) {
			if (!it->Merges(cp) || it->count + cp.count > 250) continue;
			it->count += cp.count;
			it->feeder_share += cp.feeder_share;
			return;
		}
		this->packets.push_back(cp);
	}
	uint MoveTo(CargoList &dest, uint max_move)
	{
		uint moved = 0;
		while (moved < max_move && !this->packets.empty()) {
			CargoPacket &front = this->packets.front();
			CargoPacket part = front;
			part.count = std::min(front.count, max_move - moved);
			moved += part.count;
			this->count -= part.count;
			this->cargo_days_in_transit -= part.count * part.days_in_transit;
			dest.Append(part);
			if (part.count == front.count) this->packets.pop_front(); else front.count -= part.count;
		}
		return moved;
	}
	void AgeCargo()
	{
		for (CargoPacket &cp : this->packets) {
			if (cp.days_in_transit == 0xFF) continue;
			cp.days_in_transit++;
			this->cargo_days_in_transit += cp.count;
		}
	}
};

struct FlowStat { uint share[4]; StationID via[4]; uint used; };

struct GoodsEntry {
	byte status, time_since_pickup, rating, last_speed;
	CargoList cargo;
	std::map<StationID, FlowStat, std::less<StationID>, heap::Alloc<std::pair<const StationID, FlowStat>>> flows;
};

struct Vehicle;
struct Station;
struct Town;

struct Industry {
	size_t index;
	TileIndex xy;
	byte type, last_month_pct[2];
	unsigned short waiting[2], rate[2];
	uint produced[2], transported[2];
	const struct IndustrySpec *spec;
	Station *near[2];
};

struct IndustrySpec {
	const char *name;
	CargoID accepts, produces;
	void (*callback)(Industry *);
};

struct Station {
	StationID index;
	TileIndex xy;
	Town *town;
	GoodsEntry goods[NUM_CARGO];
	std::set<size_t, std::less<size_t>, heap::Alloc<size_t>> industries_near;
	Vector<Vehicle *> loading_vehicles;
	uint visits;
};

struct TransportedStat { uint old_max, new_max, old_act, new_act; };

struct Town {
	size_t index;
	TileIndex xy;
	uint population, num_houses, grow_counter;
	short ratings[8];
	TransportedStat supplied[NUM_CARGO];
	Vector<TileIndex> houses;
};

struct Order { byte type, flags; StationID dest; Order *next; };
struct OrderList { Order *first; uint num_orders, num_vehicles; Money profit; };

static ItemPool<Industry, 64> _industry_pool("Industry");
static ItemPool<Station, 64> _station_pool("Station");
static ItemPool<Town, 32> _town_pool("Town");
static ItemPool<Vehicle, 256> _vehicle_pool("Vehicle");

/* ---- Finding paths ---- */

struct PathNode {
	TileIndex tile;
	PathNode *hash_next, *parent;
	int cost, estimate;
	uint heap_index;
	bool closed;
};

struct PathCache { TileIndex from, to; byte length; byte dirs[43]; };

class Yapf {
	Vector<PathNode> arena;
	Vector<PathNode *> queue;
	PathNode *hash[256];
	TileIndex dest;

	void Swap(uint a, uint b)
	{
		std::swap(this->queue[a], this->queue[b]);
		this->queue[a]->heap_index = a;
		this->queue[b]->heap_index = b;
	}
	void Up(uint i)
	{
		while (i > 1 && this->queue[i]->estimate < this->queue[i / 2]->estimate) {
			this->Swap(i, i / 2);
			i /= 2;
		}
	}
	PathNode *Pop()
	{
		PathNode *best = this->queue[1];
		this->Swap(1, (uint)this->queue.size() - 1);
		this->queue.pop_back();
		for (uint i = 1; 2 * i < this->queue.size();) {
			uint child = 2 * i;
			if (child + 1 < this->queue.size() && this->queue[child + 1]->estimate < this->queue[child]->estimate) child++;
			if (this->queue[i]->estimate <= this->queue[child]->estimate) break;
			this->Swap(i, child);
			i = child;
		}
		return best;
	}
	PathNode *Find(TileIndex tile)
	{
		PathNode *n = this->hash[(tile ^ tile >> 5) & 255];
		while (n != nullptr && n->tile != tile) n = n->hash_next;
		return n;
	}
	void Reach(TileIndex tile, PathNode *parent, int cost)
	{
		PathNode *n = this->Find(tile);
		if (n == nullptr) {
			if (this->arena.size() == this->arena.capacity()) return;
			this->arena.push_back({ tile, this->hash[(tile ^ tile >> 5) & 255], parent, cost, cost + 30 * (int)DistanceManhattan(tile, this->dest), (uint)this->queue.size(), false });
			n = this->hash[(tile ^ tile >> 5) & 255] = &this->arena.back();
			this->queue.push_back(n);
		} else {
			if (n->closed || n->cost <= cost) return;
			n->estimate -= n->cost - cost;
			n->cost = cost;
			n->parent = parent;
		}
		this->Up(n->heap_index);
	}
	static int TileCost(TileIndex tile)
	{
		switch (GetTileType(tile)) {
			case MP_ROAD: return 10;
			case MP_STATION: return 15;
			case MP_CLEAR: return 26 + _m[tile].m3;
			default: return 0;
		}
	}

public:
	unsigned long searched = 0, found = 0;
	Yapf() : hash() { this->arena.reserve(MAP_SIZE); }
	NOINLINE bool FindPath(TileIndex from, TileIndex to, PathCache &cache)
	{
		this->arena.clear();
		this->queue.assign(1, nullptr);
		for (PathNode *&h : this->hash) h = nullptr;
		this->dest = to;
		this->searched++;
		this->Reach(from, nullptr, 0);
		while (this->queue.size() > 1) {
			PathNode *n = this->Pop();
			n->closed = true;
			if (n->tile == to) return this->Follow(n, cache);
			for (int d = 0; d < 4; d++) {
				TileIndex next = n->tile + _tile_dir[d];
				if (next >= MAP_SIZE || DistanceManhattan(next, n->tile) != 1) continue;
				int cost = next == to ? 10 : TileCost(next);
				if (cost == 0) continue;
				cost += 8 * abs((int)TileHeight(next) - (int)TileHeight(n->tile));
				this->Reach(next, n, n->cost + cost);
			}
		}
		return false;
	}

private:
	bool Follow(PathNode *n, PathCache &cache)
	{
		uint length = 0;
		for (PathNode *p = n; p->parent != nullptr; p = p->parent) length++;
		for (PathNode *p = n; p->parent != nullptr; p = p->parent) {
			if (--length >= sizeof(cache.dirs)) continue;
			int d = 0;
			while (p->parent->tile + _tile_dir[d] != p->tile) d++;
			cache.dirs[length] = (byte)d;
			cache.length = std::max<byte>(cache.length, (byte)(length + 1));
		}
		this->found++;
		return true;
	}
};

static Yapf *_yapf;

/** Paths that were found not long ago. */
struct KnownPath {
	PathCache path;
	uint expires, used;
};
typedef std::pair<TileIndex, TileIndex> PathKey;
static std::map<PathKey, KnownPath, std::less<PathKey>, heap::Alloc<std::pair<const PathKey, KnownPath>>> _known_paths;

static NOINLINE bool LookupPath(TileIndex from, TileIndex to, PathCache &cache)
{
	KnownPath &known = _known_paths[PathKey(from, to)];
	if (known.used++ == 0 || known.expires < _tick_counter) {
		known.path.from = from;
		known.path.to = to;
		known.path.length = 0;
		if (!_yapf->FindPath(from, to, known.path)) return false;
		known.expires = _tick_counter + 300 + known.used % 64;
	}
	cache.length = known.path.length;
	for (uint i = 0; i < cache.length; i++) cache.dirs[i] = known.path.dirs[i];
	return true;
}

/* ---- Vehicles ---- */

static Vehicle *_vehicle_tile_hash[64];

struct Vehicle {
	size_t index = 0;
	Vehicle *next = nullptr, *first = this;
	Vehicle *hash_next = nullptr, **hash_prev = nullptr;
	TileIndex tile = 0;
	byte progress = 0, type;
	unsigned short cur_speed = 0, max_speed, reliability = 0xFFFF;
	CargoID cargo_type = CT_PASSENGERS;
	unsigned short cargo_cap = 40;
	CargoList cargo;
	OrderList *orders = nullptr;
	Order *cur_order = nullptr;
	PathCache path{};
	byte path_pos = 0, lost_ticks = 0;
	Money profit_this_year = 0;

	Vehicle(byte type, unsigned short max_speed) : type(type), max_speed(max_speed) {}
	virtual ~Vehicle() {}
	virtual bool Tick();
	virtual int GetRunningCost() const { return 2 + this->cur_speed / 64; }
	static void *operator new(size_t size);

	void UpdateHash()
	{
		if (this->hash_prev != nullptr) {
			*this->hash_prev = this->hash_next;
			if (this->hash_next != nullptr) this->hash_next->hash_prev = this->hash_prev;
		}
		Vehicle **bucket = &_vehicle_tile_hash[(this->tile ^ this->tile >> 6) & 63];
		this->hash_next = *bucket;
		if (this->hash_next != nullptr) this->hash_next->hash_prev = &this->hash_next;
		*bucket = this;
		this->hash_prev = bucket;
	}
};

static size_t _new_vehicle_bytes;
static const char *_new_vehicle_type;
void *Vehicle::operator new(size_t size)
{
	void *item = heap_take_zeroed(_new_vehicle_type, size, size);
	size_t index = _vehicle_pool.first_unused++;
	_vehicle_pool.data[index] = static_cast<Vehicle *>(item);
	_vehicle_pool.new_index = index;
	_vehicle_pool.items++;
	_new_vehicle_bytes += size;
	return item;
}

static uint CountVehiclesOnTile(TileIndex tile)
{
	uint count = 0;
	for (Vehicle *v = _vehicle_tile_hash[(tile ^ tile >> 6) & 63]; v != nullptr; v = v->hash_next) count += v->tile == tile;
	return count;
}

static void LoadUnloadVehicle(Vehicle *v, Station *st)
{
	for (Vehicle *u = v; u != nullptr; u = u->next) {
		GoodsEntry &ge = st->goods[u->cargo_type];
		for (const CargoPacket &cp : u->cargo.packets) {
			Money pay = (Money)cp.count * DistanceManhattan(cp.source_xy, st->xy) * (300 - cp.days_in_transit) / 64;
			v->profit_this_year += pay - cp.feeder_share;
			FlowStat &flow = ge.flows[cp.source];
			flow.share[flow.used % 4] += cp.count;
			flow.via[flow.used++ % 4] = st->index;
		}
		u->cargo.packets.clear();
		u->cargo.count = u->cargo.cargo_days_in_transit = 0;
		ge.cargo.MoveTo(u->cargo, u->cargo_cap);
		ge.time_since_pickup = 0;
		ge.last_speed = (byte)std::min<uint>(v->cur_speed, 255);
	}
	st->visits++;
}

bool Vehicle::Tick()
{
	if (this->path_pos >= this->path.length) {
		Station *st = _station_pool.Get(this->cur_order->dest);
		if (this->tile == st->xy) {
			LoadUnloadVehicle(this, st);
			this->cur_order = this->cur_order->next != nullptr ? this->cur_order->next : this->orders->first;
			st = _station_pool.Get(this->cur_order->dest);
		}
		this->path.from = this->tile;
		this->path.to = st->xy;
		this->path.length = this->path_pos = 0;
		if (this->lost_ticks != 0) {
			this->lost_ticks--;
			return false;
		}
		if (!LookupPath(this->tile, st->xy, this->path)) {
			this->lost_ticks = 250;
			return false;
		}
	}
	this->cur_speed = (unsigned short)std::min<uint>(this->max_speed, this->cur_speed + 12);
	uint progress = this->progress + this->cur_speed;
	this->profit_this_year -= this->GetRunningCost();
	if (progress >= 256) {
		TileIndex next = this->tile + _tile_dir[this->path.dirs[this->path_pos]];
		if (this->type != 2 && CountVehiclesOnTile(next) > 3) {
			this->cur_speed /= 2;
			if (this->cur_speed > 20) return true;
		}
		this->path_pos++;
		TileIndex last = this->tile;
		this->tile = next;
		this->UpdateHash();
		for (Vehicle *u = this->next; u != nullptr; u = u->next) {
			std::swap(u->tile, last);
			u->UpdateHash();
		}
	}
	this->progress = (byte)progress;
	return true;
}

struct RoadVehicle final : Vehicle {
	byte state = 0, frame = 0, overtaking = 0;
	RoadVehicle() : Vehicle(0, 140) {}
	bool Tick() override
	{
		this->frame++;
		this->overtaking = this->overtaking ? this->overtaking - 1 : (this->frame & 31) == 0 ? 9 : 0;
		this->max_speed = this->overtaking ? 180 : 140;
		return this->Vehicle::Tick();
	}
};

struct Train final : Vehicle {
	uint weight = 40, power = 1000;
	float resistance = 0;
	Train() : Vehicle(1, 200) {}
	bool Tick() override
	{
		uint weight = 0;
		for (Vehicle *u = this; u != nullptr; u = u->next) weight += static_cast<Train *>(u)->weight + u->cargo.count;
		this->resistance = 0.9f * this->resistance + 0.1f * (float)(weight + TileHeight(this->tile) * 20);
		this->max_speed = (unsigned short)std::max(60.f, 20000.f / (this->resistance + 50));
		return this->Vehicle::Tick();
	}
	int GetRunningCost() const override { return 3 + (int)(this->power / 500); }
};

struct Aircraft final : Vehicle {
	int z_pos = 0;
	unsigned short altitude[6] = {};
	Aircraft() : Vehicle(2, 250) {}
	bool Tick() override
	{
		this->altitude[_tick_counter % 6] = (unsigned short)(TileHeight(this->tile) * 8 + 100);
		int target = 0;
		for (unsigned short a : this->altitude) target += a;
		this->z_pos += (target / 6 > this->z_pos) - (target / 6 < this->z_pos);
		return this->Vehicle::Tick();
	}
};

template <class T> static T *NewVehicle(TileIndex tile, CargoID cargo, OrderList *orders, Vehicle *chain)
{
	_new_vehicle_type = heap::name_of<T>();
	T *v = new T();
	v->index = _vehicle_pool.new_index;
	v->tile = tile;
	v->cargo_type = cargo;
	v->orders = orders;
	v->cur_order = orders->first;
	if (chain != nullptr) {
		Vehicle *last = chain;
		while (last->next != nullptr) last = last->next;
		last->next = v;
		v->first = chain;
	} else {
		orders->num_vehicles++;
	}
	v->UpdateHash();
	return v;
}

/* ---- Towns, industries and the map ---- */

static void AddToStation(Station *st, CargoID cargo, uint amount)
{
	GoodsEntry &ge = st->goods[cargo];
	amount = amount * (ge.rating + 1) / 256;
	if (amount == 0) return;
	ge.cargo.Append({ 0, amount, 0, st->index, st->xy });
	if (ge.cargo.count > 600) {
		CargoList lost;
		ge.cargo.MoveTo(lost, ge.cargo.count - 400);
	}
}

static void MineCallback(Industry *i)
{
	i->waiting[0] += i->rate[0];
	if (i->waiting[0] < 60) return;
	for (Station *st : i->near) if (st != nullptr) {
		AddToStation(st, i->spec->produces, i->waiting[0] / 2);
		i->transported[0] += i->waiting[0] / 2;
	}
	i->produced[0] += i->waiting[0];
	i->waiting[0] = 0;
}

static void FactoryCallback(Industry *i)
{
	for (uint k = 0; k < 2; k++) if (Station *st = i->near[k]) {
		GoodsEntry &ge = st->goods[i->spec->accepts];
		i->waiting[k] += (unsigned short)(ge.flows.empty() ? 1 : ge.flows.begin()->second.used & 7);
		if (i->waiting[k] > 30) {
			AddToStation(st, i->spec->produces, i->waiting[k]);
			i->produced[k] += i->waiting[k];
			i->waiting[k] = 0;
		}
	}
}

static const IndustrySpec _industry_specs[] = {
	{ "Coal mine", CT_GOODS, CT_COAL, MineCallback }, { "Factory", CT_COAL, CT_GOODS, FactoryCallback }, { "Office", CT_PASSENGERS, CT_MAIL, MineCallback },
};

static Station *NearestStation(TileIndex tile, const Station *other)
{
	Station *best = nullptr;
	FOR_ALL(Station, st, _station_pool) {
		if (st != other && (best == nullptr || DistanceManhattan(st->xy, tile) < DistanceManhattan(best->xy, tile))) best = st;
	}
	return best;
}

static void GrowTown(Town *t)
{
	TileIndex tile = t->xy;
	for (uint steps = 4 + tr_rand() % 8; steps > 0; steps--) {
		int d = (int)(tr_rand() & 3);
		TileIndex next = tile + _tile_dir[d];
		if (next >= MAP_SIZE || DistanceManhattan(next, tile) != 1 || GetTileType(next) >= MP_INDUSTRY) return;
		tile = next;
		if (GetTileType(tile) == MP_CLEAR) {
			SetTileType(tile, steps & 1 ? MP_ROAD : MP_HOUSE);
			_m[tile].m2 = (unsigned short)t->index;
			if (!(steps & 1)) t->houses.push_back(tile);
			return;
		}
	}
}

static NOINLINE void OnTick_Town()
{
	FOR_ALL(Town, t, _town_pool) {
		if (++t->grow_counter >= 200 && t->houses.size() < 60) {
			t->grow_counter = 0;
			GrowTown(t);
		}
		Station *st = nullptr;
		for (size_t h = _tick_counter % 8; h < t->houses.size(); h += 8) {
			Tile &tile = _m[t->houses[h]];
			tile.m5 = (byte)(tile.m5 + 1);
			if (tile.m5 % 16 != 0) continue;
			if (st == nullptr) st = NearestStation(t->xy, nullptr);
			AddToStation(st, tile.m4 & 1 ? CT_MAIL : CT_PASSENGERS, 5 + tile.m5 % 11);
			t->supplied[CT_PASSENGERS].new_max += 8;
			tile.m4++;
		}
	}
}

static NOINLINE void OnTick_Station()
{
	FOR_ALL(Station, st, _station_pool) {
		if ((_tick_counter + st->index) % 16 != 0) continue;
		for (uint c = 0; c < NUM_CARGO; c++) {
			GoodsEntry &ge = st->goods[c];
			if (ge.time_since_pickup != 255) ge.time_since_pickup++;
			int rating = ge.last_speed / 4 + (ge.time_since_pickup < 20 ? 100 : 20) + (ge.cargo.count < 300 ? 60 : 10);
			ge.rating = (byte)std::min(255, (ge.rating * 3 + rating) / 4);
			ge.cargo.AgeCargo();
		}
		for (size_t i : st->industries_near) _industry_pool.Get(i)->last_month_pct[0]++;
	}
}

static NOINLINE void RunTileLoop()
{
	TileIndex tile = _tick_counter * 97 % 256;
	for (; tile < MAP_SIZE; tile += 256) {
		Tile &t = _m[tile];
		switch (t.type_height >> 4) {
			case MP_CLEAR: t.m3 = (byte)((t.m3 + 1) % 9); break;
			case MP_HOUSE: if (t.m6 < 3) t.m6++; break;
			case MP_ROAD: t.m5 = (byte)(t.m5 * 5 + 1); break;
			case MP_STATION: _station_pool.Get(t.m2)->goods[t.m3 & 3].status |= 1; break;
			default: break;
		}
	}
}

static NOINLINE void CallVehicleTicks()
{
	FOR_ALL(Vehicle, v, _vehicle_pool) {
		if (v->first == v && !v->Tick()) v->cur_speed = 0;
		if ((_tick_counter & 15) == 0) v->cargo.AgeCargo();
	}
}

struct ViewSprite { int x, y, z; uint image; };

/** What would be drawn of a part of the map, in the order it is drawn. */
static NOINLINE uint DrawViewport(Vector<ViewSprite> &sprites, TileIndex centre)
{
	sprites.clear();
	for (int y = -5; y <= 5; y++) {
		for (int x = -5; x <= 5; x++) {
			TileIndex tile = (centre + x + y * (1 << MAP_LOG)) % MAP_SIZE;
			sprites.push_back({ 32 * (x - y), 16 * (x + y), (int)TileHeight(tile), (uint)(_m[tile].type_height >> 4) });
			for (Vehicle *v = _vehicle_tile_hash[(tile ^ tile >> 6) & 63]; v != nullptr; v = v->hash_next) {
				if (v->tile == tile) sprites.push_back({ 32 * (x - y) + v->progress / 8, 16 * (x + y), (int)TileHeight(tile) + 1, 100u + v->type });
			}
		}
	}
	std::sort(sprites.begin(), sprites.end(), [](const ViewSprite &a, const ViewSprite &b) { return a.y != b.y ? a.y < b.y : a.z != b.z ? a.z < b.z : a.x < b.x; });
	uint sum = 0;
	for (const ViewSprite &s : sprites) sum = sum * 31 + s.image;
	return sum;
}

static TileIndex RandomClearTile()
{
	TileIndex tile;
	do tile = (TileIndex)(tr_rand() % MAP_SIZE); while (GetTileType(tile) != MP_CLEAR || TileX(tile) % 62 == 0);
	return tile;
}

static void GenerateWorld()
{
	_m = heap::Alloc<Tile>().allocate(MAP_SIZE);
	for (TileIndex t = 0; t < MAP_SIZE; t++) {
		_m[t] = Tile();
		_m[t].type_height = (byte)((TileX(t) * TileY(t) / 97 + tr_rand() % 2) % 8);
		if (tr_rand() % 24 == 0) SetTileType(t, MP_WATER);
	}
	for (int i = 0; i < 10; i++) {
		Town *t = new (_town_pool.GetNew(sizeof(Town))) Town();
		t->index = _town_pool.new_index;
		t->xy = RandomClearTile();
		SetTileType(t->xy, MP_ROAD);
		for (int k = 0; k < 90; k++) GrowTown(t);
	}
	for (int i = 0; i < 24; i++) {
		Station *st = new (_station_pool.GetNew(sizeof(Station))) Station();
		st->index = (StationID)_station_pool.new_index;
		st->xy = RandomClearTile();
		st->town = _town_pool.Get(i % 10);
		SetTileType(st->xy, MP_STATION);
		_m[st->xy].m2 = st->index;
		for (GoodsEntry &ge : st->goods) ge.rating = 150;
	}
	for (int i = 0; i < 30; i++) {
		Industry *ind = new (_industry_pool.GetNew(sizeof(Industry))) Industry();
		ind->index = _industry_pool.new_index;
		ind->xy = RandomClearTile();
		ind->spec = &_industry_specs[i % 3];
		ind->rate[0] = (unsigned short)(2 + tr_rand() % 5);
		ind->near[0] = NearestStation(ind->xy, nullptr);
		ind->near[1] = NearestStation(ind->xy, ind->near[0]);
		for (Station *st : ind->near) st->industries_near.insert(ind->index);
		SetTileType(ind->xy, MP_INDUSTRY);
	}
	OrderList *lists = heap::Alloc<OrderList>().allocate(20);
	Order *orders = heap::Alloc<Order>().allocate(80);
	for (int i = 0; i < 20; i++) {
		OrderList *list = new (&lists[i]) OrderList{ &orders[4 * i], 4, 0, 0 };
		Station *last = _station_pool.Get(tr_rand() % 24);
		for (int k = 0; k < 4; k++) {
			Station *next = nullptr;
			for (int tries = 0; tries < 6; tries++) {
				Station *st = _station_pool.Get(tr_rand() % 24);
				if (st != last && (next == nullptr || DistanceManhattan(st->xy, last->xy) < DistanceManhattan(next->xy, last->xy))) next = st;
			}
			last = next;
			new (&orders[4 * i + k]) Order{ 1, 0, next->index, k < 3 ? &orders[4 * i + k + 1] : nullptr };
		}
		for (int k = 0; k < 4; k++) {
			TileIndex tile = _station_pool.Get(list->first->dest)->xy;
			CargoID cargo = (CargoID)(tr_rand() % NUM_CARGO);
			if (i % 3 == 0) {
				Vehicle *front = NewVehicle<Train>(tile, cargo, list, nullptr);
				for (int wagons = 0; wagons < 3; wagons++) NewVehicle<Train>(tile, cargo, list, front);
			} else if (i % 3 == 1) {
				NewVehicle<RoadVehicle>(tile, cargo, list, nullptr);
			} else {
				NewVehicle<Aircraft>(tile, cargo, list, nullptr);
			}
		}
	}
}

int main(int argc, char **argv)
{
	tr_init(argc, argv);
	TR_GLOBAL(_m, "Tile *");
	TR_GLOBAL(_tick_counter, "unsigned int");
	TR_GLOBAL(_tile_dir, "int []");
	TR_GLOBALX(_known_paths);
	TR_GLOBALX(_station_pool);
	TR_GLOBALX(_town_pool);
	TR_GLOBALX(_industry_pool);
	TR_GLOBALX(_vehicle_pool);
	TR_GLOBAL(_vehicle_tile_hash, "Vehicle * []");
	TR_GLOBAL(_industry_specs, "IndustrySpec []");
	auto yapf = heap::make<Yapf>();
	_yapf = yapf.get();
	GenerateWorld();
	Vector<ViewSprite> sprites;
	sprites.reserve(512);
	uint sum = 0;
	for (; tr_more(); _tick_counter++) {
		CallVehicleTicks();
		RunTileLoop();
		OnTick_Town();
		OnTick_Station();
		FOR_ALL(Industry, ind, _industry_pool) {
			if ((_tick_counter + ind->index) % 4 == 0) ind->spec->callback(ind);
		}
		if (_tick_counter % 4 == 0) sum += DrawViewport(sprites, _town_pool.Get(_tick_counter / 4 % 10)->xy);
	}
	if (getenv("VERBOSE")) {
		Money profit = 0;
		uint visits = 0, cargo = 0;
		FOR_ALL(Vehicle, v, _vehicle_pool) profit += v->profit_this_year;
		FOR_ALL(Station, st, _station_pool) {
			visits += st->visits;
			for (GoodsEntry &ge : st->goods) cargo += (uint)ge.cargo.packets.size();
		}
		printf("tick %u, searches %lu found %lu, visits %u, packets %u, profit %ld, %zu vehicles of %zu bytes\n", _tick_counter, _yapf->searched, _yapf->found, visits, cargo, profit, _vehicle_pool.items, _new_vehicle_bytes);
	}
	tr_sink = sum;
}
