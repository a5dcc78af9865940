/* Places for pointers that get one type where everybody sees it, and another one on a way that is easily missed. */
#define _GNU_SOURCE
#include "truth.h"
#include <search.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct one { long a, b; };
struct two { long c, d; };
#undef FUNCTION
#define FUNCTION __attribute__((noipa, noinline, used))
#define BACK __attribute__((noipa, noinline)) static
static struct one some_one;
static struct two some_two;
#define second(object) (((long *)(object))[1])

/* By its address: to another function, to a library, by one of two. */
struct slot { long pad; void *data, *other; };
BACK void put(void **slot, void *value) { *slot = value; }
FUNCTION void slot_set(struct slot *slot, struct one *one) { slot->data = one; }
FUNCTION void slot_put(struct slot *slot, struct two *two) { put(&slot->data, two); }
FUNCTION long of_slot(struct slot *slot) { return second(slot->data); }
struct aligned { long pad; void *data; };
FUNCTION void aligned_set(struct aligned *aligned, struct one *one) { aligned->data = one; }
FUNCTION int aligned_make(struct aligned *aligned) { return posix_memalign(&aligned->data, 16, 64); }
FUNCTION long of_aligned(struct aligned *aligned) { return second(aligned->data); }
struct pair { long pad; void *first, *last; };
FUNCTION void pair_set(struct pair *pair, struct one *one) { pair->last = one; }
FUNCTION void pair_choose(struct pair *pair, int is_first, struct two *two) { *(is_first ? &pair->first : &pair->last) = two; }
FUNCTION long of_pair(struct pair *pair) { return second(pair->last); }

/* By a library that knows the type. */
FUNCTION void known_set(ENTRY *known, struct one *one) { known->data = one; }
FUNCTION ENTRY *known_find(char *key) {
    ENTRY wanted = {key, 0}, *found = 0;
    hsearch_r(wanted, FIND, &found, (struct hsearch_data *)key);
    return found;
}
FUNCTION long of_known(ENTRY *known) { return second(known->data); }

/* One of two values; a value of which one way says what it is. */
struct either { void *data; };
FUNCTION void either_set(struct either *either, void *given) { either->data = given ? given : &some_one; }
FUNCTION void either_give(struct either *either) { either_set(either, &some_two); }
FUNCTION long of_either(struct either *either) { return second(either->data); }
struct checked { void *data; };
BACK int one_check(struct one *one) { return one->a != 0; }
FUNCTION void checked_set(struct checked *checked, void *item, int kind) {
    if (kind == 1)
        one_check(item);
    checked->data = item;
}
FUNCTION void checked_put(struct checked *checked, struct one *one, struct two *two) {
    checked_set(checked, one, 1);
    checked_set(checked, two, 2);
}
FUNCTION long of_checked(struct checked *checked) { return second(checked->data); }

/* One of two functions; a function that goes by a pointer which may be anything. */
struct chosen { long (*handle)(void *); void *context; };
struct single { long (*handle)(void *); void *context; };
BACK long chosen_handle(void *context) { return ((long *)context)[1]; }
BACK long chosen_other(void *context) { return (long)context; }
FUNCTION long chosen_fire(struct chosen *chosen) { return chosen->handle(chosen->context); }
FUNCTION void chosen_set(struct chosen *chosen, int is_first, struct two *two) {
    chosen->handle = is_first ? chosen_handle : chosen_other;
    chosen->context = two;
}
FUNCTION long single_fire(struct single *single) { return single->handle(single->context); }
FUNCTION void single_set(struct single *single, struct one *one) {
    single->handle = chosen_handle;
    single->context = one;
}
typedef void visit(long (*)(void *), void *);
struct visitor { visit *visit; };
BACK long visited(void *context) { return ((long *)context)[1]; }
struct watch { long (*handle)(void *); void *context; };
FUNCTION long watch_fire(struct watch *watch) { return watch->handle(watch->context); }
FUNCTION void watch_set(struct watch *watch, struct one *one) {
    watch->handle = visited;
    watch->context = one;
}
FUNCTION void visitor_go(struct visitor *visitor, struct two *two) { visitor->visit(visited, two); }
FUNCTION void visitor_set(struct visitor *visitor, char *anywhere, long n) { visitor->visit = *(visit **)(anywhere + n); }

/* What a function returns in the last place. */
struct table { void *held; };
BACK void *table_slow(struct two *two) { return two; }
BACK void *table_get(long n, struct one *one, struct two *two) { return n ? one : table_slow(two); }
FUNCTION long of_got(long n, struct one *one, struct two *two) { return second(table_get(n, one, two)); }
FUNCTION void table_set(struct table *table, void *given) { table->held = given; }

/* By vectors, by strings, as a copy. */
struct record { void *key, *value; };
struct twos { struct two *key, *value; };
FUNCTION void record_set(struct record *record, struct one *one) { record->key = one; }
FUNCTION void record_copy(struct record *record, struct twos *twos) {
    record->key = twos->key;
    record->value = twos->value;
}
FUNCTION long of_record(struct record *record) { return second(record->key); }
struct twin { void *key, *value; };
FUNCTION void twin_set(struct twin *twin, struct one *one) { twin->key = one; }
FUNCTION void twin_both(struct twin *twin, struct two **two) { twin->key = twin->value = *two; }
FUNCTION long of_twin(struct twin *twin) { return second(twin->key); }
struct wide { void *key, *value; long more[40]; };
FUNCTION void wide_set(struct wide *wide, struct one *one) { wide->key = one; }
FUNCTION void wide_copy(struct wide *wide, struct twos *twos, size_t n) { memcpy(wide, twos, n); }
FUNCTION long of_wide(struct wide *wide) { return second(wide->key); }
struct keyed { void *key, *value; };
struct by_value { struct keyed keyed; };
BACK void by_value_set(struct by_value *to, struct keyed keyed) { to->keyed = keyed; }
FUNCTION void by_value_one(struct by_value *to, struct one *one) { to->keyed.key = one; }
FUNCTION void by_value_two(struct by_value *to, struct two *two, long n) { by_value_set(to, (struct keyed){two, (void *)n}); }
FUNCTION long of_keyed(struct by_value *from) { return second(from->keyed.key); }

/* Without a name. */
struct literal { long (*run)(void *); void *with; };
BACK long literal_run(void *with) { return ((long *)with)[1]; }
BACK long literal_do(struct literal *literal) { return literal->run(literal->with); }
FUNCTION long literal_one(struct literal *literal, struct one *one) {
    literal->run = literal_run;
    literal->with = one;
    return literal_do(literal);
}
FUNCTION long literal_two(struct two *two) { return literal_do(&(struct literal){literal_run, two}); }
struct unnamed { long pad; void *data; };
static struct unnamed *one_unnamed = &(struct unnamed){1, &some_two};
FUNCTION void unnamed_set(struct unnamed *unnamed, struct one *one) { unnamed->data = one; }
FUNCTION long of_unnamed(void) { return second(one_unnamed->data); }
static __thread void *current = &some_two;
FUNCTION void current_set(struct one *one) { current = one; }
FUNCTION long of_current(void) { return second(current); }

/* Found by others, where symbols are exported. */
struct shared { long pad; void *data; };
void *hook;
FUNCTION void shared_set(struct shared *shared, void *data) { shared->data = data; }
FUNCTION void shared_own(struct shared *shared) { shared->data = &some_one; }
FUNCTION long of_shared(struct shared *shared) { return second(shared->data); }
FUNCTION void hook_own(void) { hook = &some_one; }
FUNCTION long of_hook(void) { return second(hook); }

/* In one place of the frame, one after the other. */
struct large { long pad[3]; void *data; long more[4]; };
struct small { long c, d; };
BACK long walk(long n, long (*step)(void *), void *object) { return n ? step(object) : 0; }
BACK long large_step(void *object) { return ((long *)object)[1]; }
BACK long small_step(void *object) { return ((long *)object)[1]; }
FUNCTION long in_turn(long n) {
    long sum = 0;
    {
        struct large large = {{n, 2, 3}, 0, {1}};
        sum += walk(n, large_step, &large);
    }
    {
        struct small small = {n, 5};
        sum += walk(n, small_step, &small);
    }
    return sum;
}

/* Arrays of pointers that are filled before they are kept, or copied. */
struct stack { long n; void **items; };
FUNCTION void stack_push(struct stack *stack, struct one *one) { stack->items[stack->n++] = one; }
FUNCTION void stack_take(struct stack *stack, void **items) { stack->items = items; }
FUNCTION void stack_fill(void **items, struct two *two) { items[3] = two; }
FUNCTION long of_stack(struct stack *stack) { return second(stack->items[0]); }
struct batch { long n; void **items; };
FUNCTION void batch_make(struct batch *batch) { batch->items = malloc(64); }
FUNCTION void batch_push(struct batch *batch, struct one *one) { batch->items[batch->n++] = one; }
FUNCTION void batch_all(struct batch *batch, void **items, size_t n) { memcpy(batch->items + batch->n, items, n * 8); }
FUNCTION long of_batch(struct batch *batch) { return second(batch->items[0]); }

/* Its address alone is passed on, and lies where the object begins. */
struct lent { long pad[4]; void *data; };
BACK int lent_fill(void **out) {
    *out = &some_two;
    return 1;
}
FUNCTION void lent_set(struct lent *lent, struct one *one) { lent->data = one; }
FUNCTION int lent_take(struct lent *lent) { return lent_fill(&lent->data); }
FUNCTION long of_lent(struct lent *lent) { return second(lent->data); }
struct begun { void *data; long pad; };
BACK int begun_fill(void **out, long n) {
    *out = malloc(n);
    return 1;
}
FUNCTION void begun_set(struct begun *begun, struct one *one) { begun->data = one; }
FUNCTION int begun_take(struct begun *begun, long n) { return begun_fill(&begun->data, n); }
FUNCTION long of_begun(struct begun *begun) { return second(begun->data); }

/* By what lies in it; in bytes; by another arm of a union. */
struct hook { struct hook *next, *before; };
struct hooked { void *data; struct hook hook; };
FUNCTION void hooked_set(struct hooked *hooked, struct one *one) { hooked->data = one; }
FUNCTION void hooked_by(struct hook *hook, struct two *two) {
    ((struct hooked *)((char *)hook - offsetof(struct hooked, hook)))->data = two;
}
FUNCTION long of_hooked(struct hooked *hooked) { return second(hooked->data); }
struct placed { long pad[11]; void *data; };
static char room[sizeof(struct placed)] __attribute__((aligned(16)));
FUNCTION void placed_set(struct placed *placed, struct one *one) { placed->data = one; }
FUNCTION struct placed *placed_make(struct two *two) {
    ((struct placed *)room)->data = two;
    return (struct placed *)room;
}
FUNCTION long of_placed(struct placed *placed) { return second(placed->data); }
struct left { void *x, *y; };
struct right { long n; void *z; };
union arms { struct left left; struct right right; };
FUNCTION void right_set(struct right *right, struct one *one) { right->z = one; }
FUNCTION void arms_set(union arms *arms, struct two *two) { arms->right.z = two; }
FUNCTION long of_right(struct right *right) { return second(right->z); }

/* By a pointer to a function that takes something else. */
struct logger { long pad; void (*log)(struct two *); };
static long logged;
BACK void log_any(void *object) { logged += ((long *)object)[1]; }
FUNCTION void logger_set(struct logger *logger) { logger->log = (void (*)(struct two *))log_any; }
FUNCTION void logger_log(struct logger *logger, struct two *two) { logger->log(two); }
struct other_logger { long pad; void (*log)(void *); void *with; };
FUNCTION void other_set(struct other_logger *logger, struct one *one) {
    logger->log = log_any;
    logger->with = one;
}
FUNCTION void other_log(struct other_logger *logger) { logger->log(logger->with); }

/* Turned round in a vector. */
struct turned { void *key, *value; };
FUNCTION void turned_set(struct turned *turned, struct one *one) { turned->key = one; }
BACK long turned_use(struct turned *turned) { return second(turned->key); }
FUNCTION long turned_round(struct twos *twos) {
    struct turned turned = {twos->value, twos->key};
    return turned_use(&turned);
}

/* Two pointers into one array; an array that was filled before, or moved. */
struct range { long n; void **begin, **end; };
FUNCTION void range_make(struct range *range) { range->begin = range->end = malloc(64); }
FUNCTION void range_add(struct range *range, struct two *two) { *range->end++ = two; }
FUNCTION void range_set(struct range *range, struct one *one) { range->begin[range->n] = one; }
FUNCTION long of_range(struct range *range) { return second(range->begin[0]); }
struct filled { long n; void **items; };
FUNCTION void filled_from(struct filled *filled, void **from, size_t n) {
    void **items = malloc(n * 8);
    memcpy(items, from, n * 8);
    filled->items = items;
}
FUNCTION void filled_set(struct filled *filled, struct one *one) { filled->items[filled->n] = one; }
FUNCTION long of_filled(struct filled *filled) { return second(filled->items[0]); }
struct moved { long n; void **items; };
FUNCTION void moved_from(struct moved *moved, struct range *range) { moved->items = realloc(range->end, 64); }
FUNCTION void moved_set(struct moved *moved, struct one *one) { moved->items[moved->n] = one; }
FUNCTION long of_moved(struct moved *moved) { return second(moved->items[0]); }
struct shifted { long pad; void *a, *b, *c, *d; };
FUNCTION void shifted_set(struct shifted *shifted, struct one *one, struct two *two) {
    shifted->d = one;
    shifted->b = two;
}
FUNCTION void shifted_by(struct shifted *shifted, size_t n) { memmove(&shifted->c, &shifted->a, n); }
FUNCTION long of_shifted(struct shifted *shifted) { return second(shifted->d); }

/* In one of two objects. */
struct near { long pad[5]; void *data; };
struct far { long pad[2]; void *data; };
static struct far one_far;
FUNCTION void near_or_far(struct near *near, long is_near, struct two *two) {
    if (is_near)
        near->data = two;
    else
        one_far.data = two;
}
FUNCTION struct far *far_get(void) { return &one_far; }
FUNCTION void far_set(struct far *far, struct one *one) { far->data = one; }
FUNCTION long of_far(struct far *far) { return second(far->data); }
struct seemed { long pad[6]; void *data; };
BACK int near_check(struct near *near) { return near->pad[0] != 0; }
FUNCTION void seemed_put(void *object, long kind, struct two *two) {
    if (kind == 1)
        near_check(object);
    ((struct seemed *)object)->data = two;
}
FUNCTION void seemed_set(struct seemed *seemed, struct one *one) { seemed->data = one; }
FUNCTION long of_seemed(struct seemed *seemed) { return second(seemed->data); }

/* Taken out of a queue as bytes. */
struct queue { char *bytes; size_t at, size; };
struct popped { void *data; long pad; };
BACK int queue_pop(struct queue *queue, void *out) {
    memcpy(out, queue->bytes + queue->at, queue->size);
    return 1;
}
FUNCTION int popped_take(struct queue *queue, struct popped *popped) { return queue_pop(queue, popped); }
FUNCTION void popped_set(struct popped *popped, struct one *one) { popped->data = one; }
FUNCTION long of_popped(struct popped *popped) { return second(popped->data); }

/* There from the beginning, after thread-local bytes that are not aligned, or where code is. */
static __thread int spoiled = 3;
struct tabled { long pad[10]; void *data; };
static struct tabled tabled = {{1}, &some_two};
FUNCTION void tabled_set(struct tabled *tabled, struct one *one) { tabled->data = one, spoiled++; }
FUNCTION struct tabled *tabled_get(void) { return &tabled; }
FUNCTION long of_tabled(struct tabled *tabled) { return second(tabled->data); }
struct fixed { long pad[12]; void *data; };
static const struct fixed fixed = {{1}, &some_two};
FUNCTION void fixed_set(struct fixed *fixed, struct one *one) { fixed->data = one; }
FUNCTION const struct fixed *fixed_get(void) { return &fixed; }
FUNCTION long of_fixed(const struct fixed *fixed) { return second(fixed->data); }

/* Only read by what others call. */
struct seen { long pad[9]; void *data; };
static void seen_set(struct seen *seen, struct one *one) { seen->data = one; }
long seen_read(const struct seen *seen) { return second(seen->data); }

/* And one that gets nothing else. */
struct sure { long pad[7]; void *data; };
FUNCTION void sure_set(struct sure *sure, struct one *one) { sure->data = one; }
FUNCTION long of_sure(struct sure *sure) { return second(sure->data); }

int main(int argc, char **argv) {
    print_image();
    ADDRESS("some_one", &some_one);
    if (argc < 100)
        return 0;
    void *any = argv[1];
    long sum = 0;
    slot_set(any, any), slot_put(any, any), sum += of_slot(any);
    aligned_set(any, any), sum += aligned_make(any) + of_aligned(any);
    pair_set(any, any), pair_choose(any, argc, any), sum += of_pair(any);
    known_set(known_find(any), any), sum += of_known(any);
    either_give(any), sum += of_either(any);
    checked_put(any, any, any), sum += of_checked(any);
    chosen_set(any, argc, any), single_set(any, any), sum += chosen_fire(any) + single_fire(any);
    visitor_set(any, any, argc), visitor_go(any, any), watch_set(any, any), sum += watch_fire(any);
    table_set(any, any), sum += of_got(argc, any, any);
    record_set(any, any), record_copy(any, any), sum += of_record(any);
    twin_set(any, any), twin_both(any, any), sum += of_twin(any);
    wide_set(any, any), wide_copy(any, any, argc), sum += of_wide(any);
    by_value_one(any, any), by_value_two(any, any, argc), sum += of_keyed(any);
    sum += literal_one(any, any) + literal_two(any);
    unnamed_set(one_unnamed, any), sum += of_unnamed();
    current_set(any), sum += of_current();
    shared_own(any), sum += of_shared(any);
    sum += in_turn(argc);
    stack_push(any, any), stack_take(any, any), stack_fill(any, any), sum += of_stack(any);
    batch_make(any), batch_push(any, any), batch_all(any, any, argc), sum += of_batch(any);
    lent_set(any, any), sum += lent_take(any) + of_lent(any);
    begun_set(any, any), sum += begun_take(any, argc) + of_begun(any);
    hooked_set(any, any), hooked_by(any, any), sum += of_hooked(any);
    placed_set(placed_make(any), any), sum += of_placed(any);
    right_set(any, any), arms_set(any, any), sum += of_right(any);
    logger_set(any), logger_log(any, any), other_set(any, any), other_log(any);
    turned_set(any, any), sum += turned_round(any);
    range_make(any), range_add(any, any), range_set(any, any), sum += of_range(any);
    filled_from(any, any, argc), filled_set(any, any), sum += of_filled(any);
    moved_from(any, any), moved_set(any, any), sum += of_moved(any);
    shifted_set(any, any, any), shifted_by(any, argc), sum += of_shifted(any);
    near_or_far(any, argc, any), far_set(far_get(), any), sum += of_far(far_get());
    seemed_put(any, argc, any), seemed_set(any, any), sum += of_seemed(any);
    sum += popped_take(any, any), popped_set(any, any), sum += of_popped(any);
    tabled_set(tabled_get(), any), sum += of_tabled(tabled_get());
    fixed_set(any, any), sum += of_fixed(fixed_get());
    seen_set(any, any), sum += seen_read(any);
    sure_set(any, any), sum += of_sure(any);
    hook_own(), sum += of_hook();
    return (int)sum;
}
