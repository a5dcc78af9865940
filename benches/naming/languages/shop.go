// A shop: a catalogue in a slice, orders on intrusive lists, prices in a treap, a heap of events (generic), payments
// behind an interface, rules as trees and closures, a cache, maps of structs, a ledger on channels, a warehouse.
//
// Nothing is collected, so no address is used twice; what is stepped makes no more than a few megabytes a minute. The
// stacks of goroutines move: nothing on them is told. `unsafe` is only used to tell.
package main

import (
	"container/heap"
	"container/list"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// What the program tells of its memory

var manifest *os.File
var limit time.Time

func tell(kind string, format string, arguments ...interface{}) {
	fmt.Fprintf(manifest, kind+"\t"+format+"\n", arguments...)
}

func openManifest() {
	name := os.Getenv("TRUTH_MANIFEST")
	if name == "" {
		name = "/dev/null"
	}
	manifest, _ = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	seconds := 2.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	limit = time.Now().Add(time.Duration(seconds * 1e9))
	tell("V", "1")
	var thread uintptr
	const archGetFs = 0x1003
	syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, archGetFs, uintptr(unsafe.Pointer(&thread)), 0)
	tell("T", "%d\t%x\t%x\t%x", syscall.Gettid(), thread, 0, 0) // its stack moves: no bounds
}

func region(name string, start unsafe.Pointer, bytes, element uintptr) {
	if bytes > 0 {
		tell("H", "%s\t%x\t%d\t%d", name, uintptr(start), bytes, element)
	}
}

// One new object; its name is that of debug information.
func one[T any](name string, object *T) *T {
	region(name, unsafe.Pointer(object), unsafe.Sizeof(*object), unsafe.Sizeof(*object))
	return object
}

// The array behind a slice, as far as it was allocated.
func many[T any](name string, slice []T) []T {
	var element T
	full := slice[:cap(slice)]
	if len(full) > 0 {
		region(name, unsafe.Pointer(&full[0]), uintptr(len(full))*unsafe.Sizeof(element), unsafe.Sizeof(element))
	}
	return slice
}

// The same, if an append has made another array.
func grown[T any](name string, before int, slice []T) {
	if cap(slice) != before {
		many(name, slice)
	}
}

func global[T any](name string, variable *T, kind string) {
	tell("G", "%s\t%x\t%d\t%s", name, uintptr(unsafe.Pointer(variable)), unsafe.Sizeof(*variable), kind)
}

// The runtime's own header of a map, and the first array of its buckets. Code of the runtime alone touches the header
// and the eight bytes that begin a bucket; elements are touched by both. Keys that are strings are told of nowhere: the
// runtime reads them as another struct of the same layout.
type mapHeader struct {
	count      int
	flags, b   uint8
	noverflow  uint16
	hash0      uint32
	buckets    unsafe.Pointer
	oldbuckets unsafe.Pointer
	nevacuate  uintptr
	extra      unsafe.Pointer
}

func tellMap(header unsafe.Pointer, keyName string, keyBytes uintptr, valueName string, valueBytes uintptr) {
	h := (*mapHeader)(header)
	region("runtime.hmap", header, unsafe.Sizeof(*h), unsafe.Sizeof(*h))
	if h.oldbuckets != nil {
		panic("a map that grows is not told")
	}
	size := (8 + 8*keyBytes + 8*valueBytes + 8 + 7) &^ 7
	for n := uintptr(0); n < 1<<h.b; n++ {
		bucket := unsafe.Add(h.buckets, n*size)
		region("runtime.bmap", bucket, 8, 8)
		if keyName != "" {
			region(keyName, unsafe.Add(bucket, 8), 8*keyBytes, keyBytes)
		}
		region(valueName, unsafe.Add(bucket, 8+8*keyBytes), 8*valueBytes, valueBytes)
	}
}

// The shop

type Base struct {
	ID      uint32
	Flags   uint16
	Active  bool
	Created int64
}

type Money struct {
	Units    int64
	Nanos    int32
	Currency uint8
}

type Item struct {
	Base
	Name   string
	Price  Money
	Stock  int32
	Sold   int32
	Weight float64
	Tags   []uint16
	Group  *Category
}

type Category struct {
	Name     string
	Items    []*Item
	Parent   *Category
	Totals   [4]Money
	Discount float64
}

type Customer struct {
	Base
	Name    string
	Email   string
	Balance Money
	Last    *Order
	Chain   *Customer
	Score   float64
	Visits  uint32
	History [6]uint32
}

type Premium struct {
	*Customer
	Level int16
	Perks [3]Perk
}

type Perk struct {
	Percent float32
	Uses    int32
	Until   int64
}

type Line struct {
	Item     *Item
	Count    int32
	Discount float32
	Sum      int64
}

type Order struct {
	Base
	Customer   *Customer
	Lines      []Line
	Total      Money
	State      uint8
	Payment    Payment
	Next, Prev *Order
	Rule       func(*Order) int64
}

type Queue struct {
	Head, Tail *Order
	Length     int
}

type Payment interface {
	Charge(amount int64) int64
	Kind() string
}

type Card struct {
	Number  [16]uint8
	Limit   int64
	Used    int64
	Refused uint32
}

type Invoice struct {
	Address string
	Open    []int64
	Days    int32
	Paid    int32
}

type Voucher struct {
	Left   int64
	Issuer *Voucher
	Series uint64
}

func (c *Card) Charge(amount int64) int64 {
	if c.Used+amount > c.Limit {
		c.Refused++
		c.Used /= 2
		return 0
	}
	c.Used += amount
	digit := &c.Number[int(amount)&15]
	*digit = (*digit + 1) % 10
	return amount
}
func (c *Card) Kind() string { return "card" }

func (i *Invoice) Charge(amount int64) int64 {
	slot := int(amount) % len(i.Open)
	if slot < 0 {
		slot = 0
	}
	old := i.Open[slot]
	i.Open[slot] = amount
	if old > 0 {
		i.Paid++
	}
	i.Days = (i.Days + 1) % 60
	return amount - old/100
}
func (i *Invoice) Kind() string { return "invoice" }

func (v *Voucher) Charge(amount int64) int64 {
	part := amount / 2
	if v.Left < part {
		v.Left += 100000
		if v.Issuer != nil {
			v.Issuer.Left -= 10
		}
	}
	v.Left -= part
	v.Series = v.Series*6364136223846793005 + 1
	return part
}
func (v *Voucher) Kind() string { return "voucher" }

// A treap of prices
type Node struct {
	Key         int64
	Priority    uint32
	Count       int32
	Item        *Item
	Left, Right *Node
}

var spareNode *Node

func newNode(key int64, item *Item) *Node {
	n := spareNode
	if n != nil {
		spareNode = n.Right
	} else {
		n = one("main.Node", new(Node))
	}
	*n = Node{Key: key, Item: item, Priority: uint32(random()), Count: 1}
	return n
}

func insert(root *Node, key int64, item *Item) *Node {
	if root == nil {
		return newNode(key, item)
	}
	root.Count++
	if key < root.Key {
		root.Left = insert(root.Left, key, item)
		if l := root.Left; l.Priority > root.Priority {
			root.Left, l.Right = l.Right, root
			return l
		}
	} else {
		root.Right = insert(root.Right, key, item)
		if r := root.Right; r.Priority > root.Priority {
			root.Right, r.Left = r.Left, root
			return r
		}
	}
	return root
}

func remove(root *Node, key int64) *Node {
	if root == nil {
		return nil
	}
	if key < root.Key {
		root.Left = remove(root.Left, key)
	} else if key > root.Key {
		root.Right = remove(root.Right, key)
	} else {
		rest := merge(root.Left, root.Right)
		root.Right = spareNode
		spareNode = root
		return rest
	}
	root.Count--
	return root
}

func merge(a, b *Node) *Node {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	if a.Priority > b.Priority {
		a.Right = merge(a.Right, b)
		return a
	}
	b.Left = merge(a, b.Left)
	return b
}

func (n *Node) between(low, high int64, visit func(*Node)) {
	for n != nil {
		if n.Key < low {
			n = n.Right
			continue
		}
		if n.Key > high {
			n = n.Left
			continue
		}
		n.Left.between(low, high, visit)
		visit(n)
		n = n.Right
	}
}

// Generic: a heap and a ring. What the compiler makes of them is shared by types of one shape; the objects are told by
// the shape's name, as only such code touches their fields, and knows them by it.
type Timed interface{ at() int64 }
type Heap[T Timed] struct {
	items []T
	moves int
}

func (h *Heap[T]) less(i, j int) bool { return h.items[i].at() < h.items[j].at() }
func (h *Heap[T]) length() int        { return len(h.items) }

func (h *Heap[T]) sift(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			return
		}
		if child+1 < len(h.items) && h.less(child+1, child) {
			child++
		}
		if !h.less(child, i) {
			return
		}
		h.items[i], h.items[child] = h.items[child], h.items[i]
		h.moves++
		i = child
	}
}

func (h *Heap[T]) push(x T) {
	h.items = append(h.items, x)
	for i := len(h.items) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			break
		}
		h.items[i], h.items[parent] = h.items[parent], h.items[i]
		i = parent
	}
}

func (h *Heap[T]) pop() T {
	top := h.items[0]
	last := len(h.items) - 1
	h.items[0] = h.items[last]
	h.items = h.items[:last]
	h.sift(0)
	return top
}

type Ring[K comparable, V any] struct {
	keys   [16]K
	values [16]V
	next   int
	hits   uint64
}

func (r *Ring[K, V]) find(key K) (V, bool) {
	for i := range r.keys {
		if r.keys[i] == key {
			r.hits++
			return r.values[i], true
		}
	}
	var none V
	return none, false
}

func (r *Ring[K, V]) put(key K, value V) {
	r.keys[r.next] = key
	r.values[r.next] = value
	r.next = (r.next + 1) % len(r.keys)
}

type Event struct {
	At    int64
	Kind  uint8
	Order *Order
	Args  [3]int32
}

func (e Event) at() int64 { return e.At }

// Rules: trees behind an interface
type Expr interface{ value(*Order) float64 }
type Const struct{ Value float64 }
type Field struct {
	Which uint8
	Reads uint32
}
type Binary struct {
	Op          byte
	Left, Right Expr
	Last        float64
}

func (c *Const) value(*Order) float64 { return c.Value }
func (f *Field) value(o *Order) float64 {
	f.Reads++
	switch f.Which {
	case 0:
		return float64(o.Total.Units)
	case 1:
		return float64(len(o.Lines))
	case 2:
		return o.Customer.Score
	}
	return float64(o.State)
}
func (b *Binary) value(o *Order) float64 {
	x, y := b.Left.value(o), b.Right.value(o)
	switch b.Op {
	case '+':
		b.Last = x + y
	case '*':
		b.Last = x * y
	case '<':
		b.Last = math.Min(x, y)
	default:
		b.Last = x - y
	}
	return b.Last
}

func rule(depth int) Expr {
	if depth == 0 {
		if random()%2 == 0 {
			return one("main.Const", &Const{Value: 0.01 + float64(random()%100)/100})
		}
		return one("main.Field", &Field{Which: uint8(random() % 4)})
	}
	return one("main.Binary", &Binary{Op: "+*<-"[random()%4], Left: rule(depth - 1), Right: rule(depth - 1)})
}

func count(e Expr) (constants, fields, reads int) {
	switch x := e.(type) {
	case *Const:
		return 1, 0, 0
	case *Field:
		return 0, 1, int(x.Reads)
	case *Binary:
		a, b, c := count(x.Left)
		d, e, f := count(x.Right)
		return a + d, b + e, c + f
	}
	return
}

// A cache: a map and a list by use
type Cached struct {
	key          uint64
	text         []byte
	newer, older *Cached
	used         uint32
}

type Cache struct {
	entries      map[uint64]*Cached
	first, last  *Cached
	hits, misses uint64
}

func (c *Cache) unlink(e *Cached) {
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		c.first = e.older
	}
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		c.last = e.newer
	}
}

func (c *Cache) front(e *Cached) {
	e.newer, e.older = nil, c.first
	if c.first != nil {
		c.first.newer = e
	} else {
		c.last = e
	}
	c.first = e
}

func (c *Cache) page(item *Item) *Cached {
	if e, ok := c.entries[uint64(item.ID)]; ok {
		c.hits++
		e.used++
		c.unlink(e)
		c.front(e)
		return e
	}
	c.misses++
	e := c.last
	c.unlink(e)
	delete(c.entries, e.key)
	e.key = uint64(item.ID)
	e.text = append(e.text[:0], item.Name...)
	e.text = append(e.text, ": "...)
	e.text = strconv.AppendInt(e.text, item.Price.Units, 10)
	c.entries[e.key] = e
	c.front(e)
	return e
}

// The warehouse: rows of cells, and the way to a shelf
type Cell struct {
	Distance int32
	Blocked  bool
	Shelf    *Shelf
}
type Shelf struct {
	Row, Column int16
	Slots       [8]struct {
		Item  *Item
		Count int32
	}
}
type Point struct{ Row, Column int32 }
type Warehouse struct {
	Cells   [][]Cell
	Pending []Point
	Shelves []Shelf
	Walked  int64
}

func (w *Warehouse) walk(from Point) {
	for _, row := range w.Cells {
		for c := range row {
			row[c].Distance = -1
		}
	}
	w.Cells[from.Row][from.Column].Distance = 0
	w.Pending = append(w.Pending[:0], from)
	for head := 0; head < len(w.Pending); head++ {
		p := w.Pending[head]
		distance := w.Cells[p.Row][p.Column].Distance
		for _, d := range directions {
			r, c := p.Row+d.Row, p.Column+d.Column
			if r < 0 || c < 0 || int(r) >= len(w.Cells) || int(c) >= len(w.Cells[0]) {
				continue
			}
			cell := &w.Cells[r][c]
			if cell.Blocked || cell.Distance >= 0 {
				continue
			}
			cell.Distance = distance + 1
			w.Pending = append(w.Pending, Point{r, c})
		}
	}
}

func (w *Warehouse) pick(item *Item) int32 {
	best := int32(math.MaxInt32)
	for i := range w.Shelves {
		shelf := &w.Shelves[i]
		for s := range shelf.Slots {
			slot := &shelf.Slots[s]
			if slot.Item == item && slot.Count > 0 {
				if d := w.Cells[shelf.Row][shelf.Column].Distance; d >= 0 && d < best {
					best = d
				}
				slot.Count--
			} else if slot.Count <= 0 {
				slot.Item = item
				slot.Count = 20
			}
		}
	}
	w.Walked += int64(best & 255)
	return best
}

type Entry struct {
	Order  uint32
	Amount int64
	Rate   float64
}
type Account struct {
	Sum   int64
	Count uint32
	Worst float64
}
type Region struct {
	Country uint32
	Zone    uint32
}
type Tally struct {
	Orders  int64
	Revenue int64
	Mean    float64
}

type byTotal []Order

func (o byTotal) Len() int           { return len(o) }
func (o byTotal) Less(i, j int) bool { return o[i].Total.Units < o[j].Total.Units }
func (o byTotal) Swap(i, j int)      { o[i], o[j] = o[j], o[i] }

type bySold []*Item

func (s bySold) Len() int           { return len(s) }
func (s bySold) Less(i, j int) bool { return s[i].Sold > s[j].Sold }
func (s bySold) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }

type Row struct {
	Item  *Item
	Score float64
	Rank  int32
}

// Recommendations: factors of customers and items, learnt from what was bought
type Model struct {
	Users, Things [][]float64
	Bias          []float32
	Rate, Loss    float64
	Seen          uint64
}

func (m *Model) learn(u, t int, rating float64) {
	user, thing := m.Users[u], m.Things[t]
	guess := float64(m.Bias[t])
	for k, x := range user {
		guess += x * thing[k]
	}
	wrong := rating - guess
	for k := range user {
		x := user[k]
		user[k] += m.Rate * (wrong*thing[k] - 0.02*x)
		thing[k] += m.Rate * (wrong*x - 0.02*thing[k])
	}
	m.Bias[t] += float32(m.Rate * wrong)
	m.Loss = 0.99*m.Loss + 0.01*wrong*wrong
	m.Seen++
}

func (m *Model) best(u int) (which int) {
	most := math.Inf(-1)
	for t := u % 5; t < len(m.Things); t += 5 {
		guess := float64(m.Bias[t])
		for k, x := range m.Users[u] {
			guess += x * m.Things[t][k]
		}
		if guess > most {
			most, which = guess, t
		}
	}
	return
}

// Search: postings by word, and a trie of names
type Posting struct {
	Item   uint32
	At     uint16
	Weight float32
}
type Index struct {
	words map[string][]Posting
	found [64]Posting
	count int
	trie  *Letter
}
type Letter struct {
	Next  [27]*Letter
	Count uint32
	Items []*Item
}

func (x *Index) search(word string, least float32) []Posting {
	x.count = 0
	for _, p := range x.words[word] {
		if p.Weight < least {
			continue
		}
		x.found[x.count] = p
		if x.count++; x.count == len(x.found) {
			break
		}
	}
	return x.found[:x.count]
}

func slot(c byte) int {
	if c >= 'a' && c <= 'z' {
		return int(c-'a') + 1
	}
	return 0
}

func (x *Index) add(item *Item) {
	at := &x.trie
	for i := 0; i < len(item.Name); i++ {
		if *at == nil {
			*at = one("main.Letter", new(Letter))
		}
		(*at).Count++
		at = &(*at).Next[slot(item.Name[i])]
	}
	if *at == nil {
		*at = one("main.Letter", new(Letter))
	}
	before := cap((*at).Items)
	(*at).Items = append((*at).Items, item)
	grown("*main.Item", before, (*at).Items)
}

func (x *Index) prefix(name string) (visited int) {
	l := x.trie
	for i := 0; l != nil && i < len(name); i++ {
		l = l.Next[slot(name[i])]
	}
	if l == nil {
		return 0
	}
	l.Count++
	for _, item := range l.Items {
		visited += int(item.Stock & 1)
	}
	for _, below := range l.Next {
		if below != nil {
			visited += int(below.Count)
		}
	}
	return visited
}

// Jobs: the library's heap and list
type Job struct {
	Due   int64
	Index int
	Run   func(*Job) error
	Tries uint16
	Log   *list.Element
}
type jobs []*Job

func (j jobs) Len() int            { return len(j) }
func (j jobs) Less(a, b int) bool  { return j[a].Due < j[b].Due }
func (j jobs) Swap(a, b int)       { j[a], j[b] = j[b], j[a]; j[a].Index = a; j[b].Index = b }
func (j *jobs) Push(x interface{}) { *j = append(*j, x.(*Job)) }
func (j *jobs) Pop() interface{} {
	last := len(*j) - 1
	job := (*j)[last]
	*j = (*j)[:last]
	return job
}

type Refusal struct {
	Job    *Job
	Reason string
	Times  int
}

func (r *Refusal) Error() string { return r.Reason }

type Office struct {
	sync.Mutex
	Jobs    jobs
	Done    *list.List
	Refusal *Refusal
	Errors  uint32
	Handled atomic.Int64
	ByTries [4]uint64
}

func (o *Office) work() (err error) {
	o.Lock()
	defer o.Unlock()
	job := heap.Pop(&o.Jobs).(*Job)
	if err = job.Run(job); err != nil {
		if r, ok := err.(*Refusal); ok {
			r.Times++
			r.Job = job
		}
		o.Errors++
	}
	o.Handled.Add(1)
	o.ByTries[job.Tries&3]++
	job.Due = clock + int64(random()%100)
	o.Done.MoveToFront(job.Log)
	for e, n := o.Done.Front(), 0; e != nil && n < 5; e, n = e.Next(), n+1 {
		if j := e.Value.(*Job); j.Due > job.Due {
			j.Tries++
		}
	}
	heap.Push(&o.Jobs, job)
	return err
}

// Values in interfaces, squares in arrays of arrays, records as bytes
type Square struct {
	Owner  *Customer
	Price  int32
	Rented uint8
}
type Record struct {
	Kind   uint8
	Order  uint32
	Amount int64
	Rate   float64
}
type Audit struct {
	Bytes   []byte
	At      int
	Wrapped uint32
	Sums    [8]uint32
}

func (a *Audit) write(r *Record) {
	if a.At+24 > len(a.Bytes) {
		a.At = 0
		a.Wrapped++
	}
	b := a.Bytes[a.At : a.At+24]
	b[0] = r.Kind
	binary.LittleEndian.PutUint32(b[4:], r.Order)
	binary.BigEndian.PutUint64(b[8:], uint64(r.Amount))
	binary.LittleEndian.PutUint64(b[16:], math.Float64bits(r.Rate))
	a.At += 24
	a.Sums[r.Kind&7] += r.Order
}

func (a *Audit) check() (sum uint64) {
	for at := 0; at+24 <= len(a.Bytes); at += 24 {
		b := a.Bytes[at:]
		sum += uint64(binary.LittleEndian.Uint32(b[4:])) ^ binary.BigEndian.Uint64(b[8:])
		for _, c := range b[:4] {
			sum = sum*31 + uint64(c)
		}
	}
	return sum
}

func weigh(box interface{}) float64 {
	switch x := box.(type) {
	case int64:
		return float64(x)
	case Perk:
		return float64(x.Percent) + float64(x.Uses)
	case Region:
		return float64(x.Country*10 + x.Zone)
	case *Card:
		return float64(x.Used)
	case *Voucher:
		return float64(x.Left)
	case *Order:
		return float64(x.Total.Units)
	case fmt.Stringer:
		return 1
	}
	return 0
}

func boxed(name string, bytes uintptr, box interface{}) interface{} {
	region(name, (*[2]unsafe.Pointer)(unsafe.Pointer(&box))[1], bytes, bytes)
	return box
}

func said(text string) string {
	region("uint8", *(*unsafe.Pointer)(unsafe.Pointer(&text)), uintptr(len(text)), 1)
	return text
}

func rent() {
	total := int32(0)
	for r := range board {
		row := &board[r]
		for c := range row {
			square := &row[c]
			if square.Owner != nil && square.Rented > 0 {
				square.Owner.Balance.add(int64(square.Price), 5)
				square.Rented--
			} else if total&3 == 0 {
				square.Owner = customers[(r*16+c)%len(customers)]
				square.Rented = 3
			}
			total += square.Price
		}
	}
	for _, box := range boxes {
		sink += int64(weigh(box))
	}
	if (Region{uint32(total), 1}) == lastRegion {
		sink++
	}
	lastRegion = Region{uint32(total), uint32(clock)}
}

// Closures that share what they capture
func meter() (add func(int64), mean func() float64) {
	var window []int64
	next, sum := 0, int64(0)
	one("[]int64", &window)
	one("int", &next)
	one("int64", &sum)
	window = many("int64", make([]int64, 32))
	add = func(x int64) {
		sum += x - window[next]
		window[next] = x
		next = (next + 1) % len(window)
	}
	mean = func() float64 { return float64(sum) / float64(len(window)) }
	return
}

// Global variables
type Counters struct {
	Steps, Charged, Refused uint64
	ByState                 [8]uint32
	ByKind                  [4]struct{ Events, Delay int64 }
	Mean                    float64
}

var (
	seed       uint64 = 88172645463325252
	items      []Item
	customers  []*Customer
	buckets    [256]*Customer
	premium    []Premium
	categories map[string]*Category
	accounts   map[uint64]Account
	tallies    map[Region]Tally
	prices     *Node
	waiting    Queue
	spare      Queue
	counters   Counters
	clock      int64
	directions = [4]Point{{0, 1}, {1, 0}, {0, -1}, {-1, 0}}
	histogram  [64]int
	cache      Cache
	warehouse  Warehouse
	events     *Heap[Event]
	ring       *Ring[uint64, Money]
	rules      []Expr
	discounts  []func(*Order) int64
	ledger     chan Entry
	reports    chan *Account
	sorted     []*Item
	batch      []Order
	sink       int64
	rows       []Row
	model      Model
	index      Index
	office     Office
	audit      Audit
	board      [8][16]Square
	boxes      []interface{}
	lastRegion Region
	measure    func(int64)
	average    func() float64
	names      = []string{"lamp", "chair", "table", "spoon", "carpet", "mirror", "kettle", "shelf"}
	line       []byte
)

func (c *Counters) Mean64() int64 { return int64(c.Mean) }

func random() uint64 {
	seed ^= seed << 13
	seed ^= seed >> 7
	seed ^= seed << 17
	return seed
}

func (q *Queue) add(o *Order) {
	o.Next, o.Prev = nil, q.Tail
	if q.Tail != nil {
		q.Tail.Next = o
	} else {
		q.Head = o
	}
	q.Tail = o
	q.Length++
}

func (q *Queue) drop(o *Order) {
	if o.Prev != nil {
		o.Prev.Next = o.Next
	} else {
		q.Head = o.Next
	}
	if o.Next != nil {
		o.Next.Prev = o.Prev
	} else {
		q.Tail = o.Prev
	}
	q.Length--
}

func (m *Money) add(units int64, nanos int32) {
	m.Units += units
	m.Nanos += nanos
	if m.Nanos >= 100 {
		m.Nanos -= 100
		m.Units++
	}
}

func hash(text string) uint32 {
	h := uint32(2166136261)
	for i := 0; i < len(text); i++ {
		h = (h ^ uint32(text[i])) * 16777619
	}
	return h
}

func lookup(email string) *Customer {
	for c := buckets[hash(email)%uint32(len(buckets))]; c != nil; c = c.Chain {
		if c.Email == email {
			c.Visits++
			return c
		}
	}
	return nil
}

func order(c *Customer) *Order {
	o := spare.Head
	if o == nil {
		return nil
	}
	spare.drop(o)
	o.Customer = c
	o.Total = Money{Currency: c.Balance.Currency}
	o.State = 0
	o.ID = uint32(random())
	o.Lines = o.Lines[:0]
	for n := random()%5 + 1; n > 0; n-- {
		item := &items[random()%uint64(len(items))]
		o.Lines = append(o.Lines, Line{Item: item, Count: int32(random()%4) + 1})
	}
	for i := range o.Lines {
		l := &o.Lines[i]
		l.Sum = l.Item.Price.Units * int64(l.Count)
		l.Discount = float32(l.Item.Group.Discount)
		o.Total.add(l.Sum, l.Item.Price.Nanos)
		l.Item.Stock -= l.Count
		l.Item.Sold += l.Count
	}
	c.Last = o
	c.History[c.Visits%uint32(len(c.History))] = o.ID
	waiting.add(o)
	events.push(Event{At: clock + int64(random()%200), Kind: uint8(random() % 4), Order: o, Args: [3]int32{1, 2, 3}})
	return o
}

func settle(e *Event) {
	o := e.Order
	kind := &counters.ByKind[e.Kind]
	kind.Events++
	kind.Delay += clock - e.At + int64(e.Args[int(e.Kind)%3])
	counters.ByState[o.State&7]++
	amount := o.Total.Units - o.Rule(o)
	if paid := o.Payment.Charge(amount); paid > 0 {
		counters.Charged += uint64(paid)
		o.Customer.Balance.add(-paid, 1)
		o.Customer.Score = o.Customer.Score*0.9 + float64(paid)*0.001
	} else {
		counters.Refused++
	}
	if len(o.Payment.Kind()) == 4 {
		histogram[uint64(amount)%64]++
	}
	key := uint64(o.Customer.ID)
	account := accounts[key]
	account.Sum += amount
	account.Count++
	account.Worst = math.Max(account.Worst, float64(amount))
	accounts[key] = account
	where := Region{Country: o.Customer.ID % 7, Zone: uint32(o.Customer.Flags % 3)}
	tally := tallies[where]
	tally.Orders++
	tally.Revenue += o.Total.Units
	tally.Mean += (float64(o.Total.Units) - tally.Mean) / float64(tally.Orders)
	tallies[where] = tally
	select {
	case ledger <- Entry{Order: o.ID, Amount: amount, Rate: o.Customer.Score}:
	default:
		for n := 0; n < cap(ledger)/2; n++ {
			entry := <-ledger
			sink += entry.Amount + int64(entry.Rate)
		}
	}
	audit.write(&Record{Kind: o.State, Order: o.ID, Amount: amount, Rate: tally.Mean})
	o.State = (o.State + 1) & 7
	waiting.drop(o)
	spare.add(o)
}

func reprice() {
	item := &items[random()%uint64(len(items))]
	old := item.Price.Units*1024 + int64(item.ID)
	prices = remove(prices, old)
	item.Price.add(int64(random()%50)-24, 7)
	if item.Price.Units < 1 {
		item.Price.Units = 100
	}
	if item.Stock < 0 {
		item.Stock += 1000
	}
	prices = insert(prices, item.Price.Units*1024+int64(item.ID), item)
	total, found := int64(0), 0
	prices.between(100*1024, 140*1024, func(n *Node) {
		found++
		total += n.Item.Price.Units + int64(n.Count)
	})
	if found > 0 {
		counters.Mean = float64(total) / float64(found)
	}
	if money, ok := ring.find(uint64(item.ID)); ok {
		sink += money.Units
	} else {
		ring.put(uint64(item.ID), item.Price)
	}
}

func groups() {
	for _, name := range names {
		c := categories[name]
		weight := 0.0
		for _, item := range c.Items {
			weight += item.Weight * float64(item.Sold)
			for _, tag := range item.Tags {
				histogram[tag%64]++
			}
		}
		c.Totals[int(clock)&3] = Money{Units: int64(weight), Currency: 1}
		c.Discount = math.Mod(c.Discount+0.01, 0.3)
		for p := c.Parent; p != nil; p = p.Parent {
			p.Totals[0].add(int64(weight), 3)
		}
	}
	for i := range premium {
		p := &premium[i]
		for k := range p.Perks {
			perk := &p.Perks[k]
			if perk.Until < clock {
				perk.Until = clock + 500
				perk.Uses = 0
			}
			perk.Uses++
			perk.Percent = perk.Percent*0.5 + float32(p.Level)
		}
		p.Score += float64(p.Perks[1].Percent) * 0.01
		p.Balance.add(1, 1)
	}
	for region, tally := range tallies {
		sink += int64(region.Country) + tally.Revenue
	}
}

func report() {
	for i := range rows {
		rows[i] = Row{Item: &items[(int(clock)+i*7)%len(items)], Rank: int32(i)}
		rows[i].Score = rows[i].Item.Weight * float64(rows[i].Item.Sold)
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i].Score > rows[j].Score })
	sort.Sort(bySold(sorted[:40]))
	n := 0
	for o := waiting.Head; o != nil && n < len(batch); o = o.Next {
		batch[n] = *o
		n++
	}
	sort.Sort(byTotal(batch[:n]))
	line = line[:0]
	for i := 0; i < n; i++ {
		o := &batch[i]
		line = append(line, o.Customer.Name...)
		line = append(line, ' ')
		line = strconv.AppendInt(line, o.Total.Units, 10)
		if len(line) > 3500 {
			break
		}
	}
	for _, c := range line {
		if c == ' ' {
			sink++
		}
	}
	select {
	case account := <-reports:
		account.Count++
		reports <- account
	default:
	}
}

func auctioneer(requests chan *Account) { // another goroutine, now and then
	for account := range requests {
		account.Sum++
		time.Sleep(50 * time.Millisecond)
		requests <- account
	}
}

func step() {
	clock++
	counters.Steps++
	c := lookup(customers[random()%uint64(len(customers))].Email)
	if o := order(c); o != nil {
		o.Rule = discounts[random()%uint64(len(discounts))]
		e := rules[random()%uint64(len(rules))]
		c.Score += math.Mod(e.value(o), 10)
		warehouse.pick(o.Lines[0].Item)
		sink += int64(len(cache.page(o.Lines[0].Item).text))
	}
	for events.length() > 60 {
		e := events.pop()
		settle(&e)
	}
	reprice()
	who, what := int(random()%uint64(len(model.Users))), int(random()%uint64(len(model.Things)))
	model.learn(who, what, float64(items[what].Sold&7))
	if err := office.work(); err != nil {
		sink += int64(len(err.Error()))
	}
	measure(counters.Mean64())
	switch clock % 32 {
	case 4:
		sink += int64(model.best(who))
		for _, p := range index.search(names[clock/32%8], 0.3) {
			sink += int64(p.Item) + int64(p.At)
		}
	case 12:
		sink += int64(index.prefix(items[what].Name[:2+what%3]))
		rent()
	case 20:
		sink += int64(audit.check() & 7)
		counters.Mean += average() * 0.001
	case 0:
		groups()
	case 8:
		report()
	case 16:
		warehouse.walk(Point{int32(random() % 12), int32(random() % 20)})
	case 24:
		for _, e := range rules {
			a, b, c := count(e)
			sink += int64(a + b + c)
		}
	}
}

func setUp() {
	root := one("main.Category", &Category{Name: "all"})
	categories = make(map[string]*Category, 16)
	for _, name := range names {
		categories[name] = one("main.Category", &Category{Name: name, Parent: root, Discount: 0.1})
	}
	for i := 0; i < 400; i++ {
		before := cap(items)
		items = append(items, Item{Base: Base{ID: uint32(i), Active: true}, Price: Money{Units: int64(50 + random()%200)},
			Stock: 1000, Weight: float64(random()%100) / 10})
		grown("main.Item", before, items)
	}
	for i := range items {
		item := &items[i]
		name := names[i%len(names)]
		item.Name = said(name + " " + strconv.Itoa(i))
		item.Group = categories[name]
		item.Tags = many("uint16", make([]uint16, 3+i%5))
		for t := range item.Tags {
			item.Tags[t] = uint16(random())
		}
		before := cap(item.Group.Items)
		item.Group.Items = append(item.Group.Items, item)
		grown("*main.Item", before, item.Group.Items)
		before = cap(sorted)
		sorted = append(sorted, item)
		grown("*main.Item", before, sorted)
		prices = insert(prices, item.Price.Units*1024+int64(item.ID), item)
	}
	accounts = make(map[uint64]Account, 300)
	tallies = make(map[Region]Tally, 40)
	customers = many("*main.Customer", make([]*Customer, 200))
	for i := range customers {
		c := one("main.Customer", &Customer{Base: Base{ID: uint32(i) * 77, Flags: uint16(i)}})
		c.Name = "customer " + strconv.Itoa(i)
		c.Email = said("c" + strconv.Itoa(i*i) + "@example.org")
		slot := hash(c.Email) % uint32(len(buckets))
		c.Chain = buckets[slot]
		buckets[slot] = c
		customers[i] = c
		accounts[uint64(c.ID)] = Account{}
	}
	for country := uint32(0); country < 7; country++ {
		for zone := uint32(0); zone < 3; zone++ {
			tallies[Region{country, zone}] = Tally{}
		}
	}
	premium = many("main.Premium", make([]Premium, 24))
	for i := range premium {
		premium[i].Customer = customers[i*5]
		premium[i].Level = int16(i % 4)
	}
	cache.entries = make(map[uint64]*Cached, 100)
	for i := uint64(0); i < 64; i++ {
		e := one("main.Cached", &Cached{key: 1000000 + i})
		e.text = many("uint8", make([]byte, 0, 64))
		cache.entries[e.key] = e
		cache.front(e)
	}
	var issuer *Voucher
	for i := 0; i < 120; i++ {
		o := one("main.Order", &Order{Base: Base{ID: uint32(i)}, Lines: many("main.Line", make([]Line, 0, 8))})
		switch i % 3 {
		case 0:
			o.Payment = one("main.Card", &Card{Limit: 100000})
		case 1:
			invoice := one("main.Invoice", &Invoice{Address: "street " + strconv.Itoa(i)})
			invoice.Open = many("int64", make([]int64, 12))
			o.Payment = invoice
		case 2:
			issuer = one("main.Voucher", &Voucher{Left: 5000, Issuer: issuer})
			o.Payment = issuer
		}
		spare.add(o)
	}
	batch = many("main.Order", make([]Order, 20))
	line = many("uint8", make([]byte, 0, 4096))
	rules = many("main.Expr", make([]Expr, 10))
	for i := range rules {
		rules[i] = rule(3)
	}
	for i := 0; i < 5; i++ {
		rate, used, most := int64(i+2), one("int64", new(int64)), int64(0)
		one("int64", &most) // captured by reference, thus on the heap
		discounts = append(discounts, func(o *Order) int64 {
			*used++
			if o.Total.Units > most {
				most = o.Total.Units
			}
			most -= most / 64
			return o.Total.Units*rate/100 + int64(o.Lines[0].Discount)
		})
	}
	const cells = 20
	warehouse.Shelves = many("main.Shelf", make([]Shelf, 16))
	warehouse.Cells = many("[]main.Cell", make([][]Cell, 12))
	for r := range warehouse.Cells {
		warehouse.Cells[r] = many("main.Cell", make([]Cell, cells))
		for c := range warehouse.Cells[r] {
			warehouse.Cells[r][c].Blocked = random()%5 == 0
		}
	}
	for i := range warehouse.Shelves {
		s := &warehouse.Shelves[i]
		s.Row, s.Column = int16(random()%12), int16(random()%cells)
		warehouse.Cells[s.Row][s.Column].Shelf = s
	}
	warehouse.Pending = many("main.Point", make([]Point, 0, 12*cells))
	const event = "go.shape.struct { At int64; Kind uint8; Order *main.Order; Args [3]int32 }_0"
	const money = "go.shape.struct { Units int64; Nanos int32; Currency uint8 }_1"
	events = one("main.Heap["+event+"]", &Heap[Event]{items: many(event, make([]Event, 0, 256))})
	ring = one("main.Ring[go.shape.uint64_0,"+money+"]", &Ring[uint64, Money]{})
	rows = many("main.Row", make([]Row, 60))
	setUpMore()
	ledger = make(chan Entry, 32)
	tellChannel(*(*unsafe.Pointer)(unsafe.Pointer(&ledger)), "main.Entry", 32, unsafe.Sizeof(Entry{}))
	reports = make(chan *Account, 1)
	reports <- one("main.Account", new(Account))
	tellMap(*(*unsafe.Pointer)(unsafe.Pointer(&accounts)), "uint64", 8, "main.Account", unsafe.Sizeof(Account{}))
	tellMap(*(*unsafe.Pointer)(unsafe.Pointer(&tallies)), "main.Region", 8, "main.Tally", unsafe.Sizeof(Tally{}))
	tellMap(*(*unsafe.Pointer)(unsafe.Pointer(&cache.entries)), "uint64", 8, "*main.Cached", 8)
	tellMap(*(*unsafe.Pointer)(unsafe.Pointer(&categories)), "", 16, "*main.Category", 8)
	tellGlobals()
}

func setUpMore() {
	factors := func(n int) [][]float64 {
		all := many("[]float64", make([][]float64, n))
		for i := range all {
			all[i] = many("float64", make([]float64, 12))
			for k := range all[i] {
				all[i][k] = float64(random()%1000)/2000 - 0.25
			}
		}
		return all
	}
	model = Model{Users: factors(100), Things: factors(len(items)), Rate: 0.01}
	model.Bias = many("float32", make([]float32, len(items)))
	index.words = make(map[string][]Posting, 16)
	for _, name := range names {
		postings := many("main.Posting", make([]Posting, 0, 64))
		for i := range items {
			if items[i].Group.Name == name && len(postings) < cap(postings) {
				postings = append(postings, Posting{Item: items[i].ID, At: uint16(i), Weight: float32(random()%100) / 100})
			}
		}
		index.words[name] = postings
	}
	for i := range items {
		index.add(&items[i])
	}
	office.Done = one("container/list.List", list.New())
	office.Refusal = one("main.Refusal", &Refusal{Reason: "not today"})
	office.Jobs = many("*main.Job", make([]*Job, 0, 64))
	for i := 0; i < 40; i++ {
		job := one("main.Job", &Job{Due: int64(i)})
		threshold := uint64(i % 10)
		job.Run = func(j *Job) error {
			if random()%20 < threshold {
				return office.Refusal
			}
			j.Tries++
			return nil
		}
		job.Log = one("container/list.Element", office.Done.PushBack(job))
		heap.Push(&office.Jobs, job)
	}
	audit.Bytes = many("uint8", make([]byte, 480))
	for r := range board {
		for c := range board[r] {
			board[r][c].Price = int32(r*c + 1)
		}
	}
	boxes = many("interface {}", make([]interface{}, 0, 32))
	for i := 0; i < 32; i++ {
		switch i % 5 {
		case 0:
			boxes = append(boxes, boxed("int64", 8, int64(i)+1000000))
		case 1:
			boxes = append(boxes, boxed("main.Perk", unsafe.Sizeof(Perk{}), Perk{Percent: float32(i), Until: 9}))
		case 2:
			boxes = append(boxes, boxed("main.Region", unsafe.Sizeof(Region{}), Region{uint32(i), 5}))
		case 3:
			boxes = append(boxes, one("main.Card", &Card{Used: 5}))
		case 4:
			boxes = append(boxes, one("main.Voucher", &Voucher{Left: 3}))
		}
	}
	measure, average = meter()
	tellMap(*(*unsafe.Pointer)(unsafe.Pointer(&index.words)), "", 16, "[]main.Posting", unsafe.Sizeof([]Posting{}))
}

type channelHeader struct {
	count, size uint
	buffer      unsafe.Pointer
}

func tellChannel(channel unsafe.Pointer, name string, length, bytes uintptr) {
	region(name, (*channelHeader)(channel).buffer, length*bytes, bytes)
}

func tellGlobals() {
	global("main.seed", &seed, "uint64")
	global("main.items", &items, "[]main.Item")
	global("main.customers", &customers, "[]*main.Customer")
	global("main.buckets", &buckets, "*main.Customer[256]")
	global("main.premium", &premium, "[]main.Premium")
	global("main.categories", &categories, "map[string]*main.Category")
	global("main.accounts", &accounts, "map[uint64]main.Account")
	global("main.tallies", &tallies, "map[main.Region]main.Tally")
	global("main.prices", &prices, "*main.Node")
	global("main.spareNode", &spareNode, "*main.Node")
	global("main.waiting", &waiting, "main.Queue")
	global("main.spare", &spare, "main.Queue")
	global("main.counters", &counters, "main.Counters")
	global("main.clock", &clock, "int64")
	global("main.directions", &directions, "main.Point[4]")
	global("main.histogram", &histogram, "int[64]")
	global("main.cache", &cache, "main.Cache")
	global("main.warehouse", &warehouse, "main.Warehouse")
	global("main.events", &events, "*main.Heap[main.Event]")
	global("main.ring", &ring, "*main.Ring[uint64,main.Money]")
	global("main.rules", &rules, "[]main.Expr")
	global("main.sorted", &sorted, "[]*main.Item")
	global("main.batch", &batch, "[]main.Order")
	global("main.sink", &sink, "int64")
	global("main.rows", &rows, "[]main.Row")
	global("main.model", &model, "main.Model")
	global("main.index", &index, "main.Index")
	global("main.office", &office, "main.Office")
	global("main.audit", &audit, "main.Audit")
	global("main.board", &board, "main.Square[8][16]")
	global("main.boxes", &boxes, "[]interface {}")
	global("main.lastRegion", &lastRegion, "main.Region")
	global("main.line", &line, "[]uint8")
	global("main.names", &names, "[]string")
	global("main.ledger", &ledger, "chan main.Entry")
}

//go:noinline
func deep(n int) int { // the stack grows before anything is told, and not again
	var room [4096]byte
	if n > 0 {
		return deep(n-1) + int(room[n%len(room)])
	}
	return 0
}

func init() { runtime.LockOSThread() }

func main() {
	debug.SetGCPercent(-1)
	deep(120)
	openManifest()
	setUp()
	requests := make(chan *Account)
	go auctioneer(requests)
	mine := one("main.Account", new(Account))
	requests <- mine
	for time.Now().Before(limit) {
		for i := 0; i < 200; i++ {
			step()
		}
		select {
		case mine = <-requests:
			mine.Count++
			requests <- mine
		default:
		}
	}
	fmt.Println(counters.Steps, sink)
}
