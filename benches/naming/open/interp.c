/* An interpreter: bytecode, tagged values on a stack, objects with a common header, mark and sweep.
 */
#include "../heap.h"

enum tag { NIL, INTEGER, REAL, OBJECT };
enum kind { TEXT, ARRAY, RECORD };

struct object {
    struct object *next;
    uint8_t kind, marked;
    uint16_t age;
};

struct value {
    enum tag tag;
    union {
        int64_t integer;
        double real;
        struct object *object;
    } as;
};

struct text {
    struct object object;
    uint32_t hash, length;
    char bytes[];
};

struct array {
    struct object object;
    uint32_t count, capacity;
    struct value *items;
};

struct slot {
    uint32_t key;
    struct value value;
};

struct record {
    struct object object;
    unsigned used;
    struct slot slots[8];
};

// clang-format off
enum operation {
    PUSH, LOAD, STORE, ADD, MULTIPLY, LESS, JUMP, JUMP_IF_NOT, NEW_ARRAY, APPEND, AT,
    NEW_RECORD, SET_FIELD, GET_FIELD, NEW_TEXT, LENGTH, CALL, RETURN, POP, HALT
};
// clang-format on

struct instruction {
    uint8_t operation, small;
    int16_t wide;
};

struct frame {
    const struct instruction *back;
    struct value *locals;
    unsigned calls;
};

struct machine {
    struct value *top;
    struct frame *frame;
    struct object *objects;
    size_t live, collections;
    uint64_t executed[HALT + 1];
    struct value stack[512];
    struct frame frames[32];
};

// clang-format off
static const struct instruction program[] = {
    /* local 0: array, 1: counter, 2: sum, 3: record, 4: a second counter */
    {NEW_ARRAY, 0, 0}, {STORE, 0, 0}, {NEW_RECORD, 0, 0}, {STORE, 3, 0},
    {PUSH, 0, 0}, {STORE, 1, 0}, {PUSH, 0, 0}, {STORE, 2, 0},
    /* 8: while counter < 60 */
    {LOAD, 1, 0}, {PUSH, 0, 60}, {LESS, 0, 0}, {JUMP_IF_NOT, 0, 30},
    /* array.append(square(counter)); record[counter & 7] = sum */
    {LOAD, 0, 0}, {LOAD, 1, 0}, {CALL, 0, 48}, {APPEND, 0, 0},
    {LOAD, 3, 0}, {LOAD, 2, 0}, {SET_FIELD, 5, 0},
    /* sum += array[counter]; sum += record.field */
    {LOAD, 0, 0}, {LOAD, 1, 0}, {AT, 0, 0}, {LOAD, 2, 0}, {ADD, 0, 0}, {STORE, 2, 0},
    {LOAD, 1, 0}, {PUSH, 0, 1}, {ADD, 0, 0}, {STORE, 1, 0}, {JUMP, 0, 8},
    /* 30: for the second counter to 40: sum += len(text) * record.field */
    {PUSH, 0, 0}, {STORE, 4, 0},
    {LOAD, 4, 0}, {PUSH, 0, 40}, {LESS, 0, 0}, {JUMP_IF_NOT, 0, 47},
    {NEW_TEXT, 0, 24}, {LENGTH, 0, 0}, {LOAD, 3, 0}, {GET_FIELD, 5, 0}, {ADD, 0, 0}, {STORE, 2, 0},
    {LOAD, 4, 0}, {PUSH, 0, 1}, {ADD, 0, 0}, {STORE, 4, 0}, {JUMP, 0, 32},
    {HALT, 0, 0},
    /* 48: square */
    {LOAD, 0, 0}, {LOAD, 0, 0}, {MULTIPLY, 0, 0}, {RETURN, 0, 0},
};
// clang-format on

static struct machine machine;

static void add_object(struct machine *m, struct object *object, enum kind kind) {
    object->kind = kind;
    object->marked = 0;
    object->age = 0;
    object->next = m->objects;
    m->objects = object;
    m->live++;
}

static NOINLINE struct text *new_text(struct machine *m, uint32_t length) {
    struct text *text = HEAP_FLEXIBLE(struct text, sizeof *text + 32);
    add_object(m, &text->object, TEXT);
    text->length = length;
    text->hash = 2166136261u;
    for (uint32_t i = 0; i < length; i++) {
        text->bytes[i] = 'a' + (i * 7 + m->live) % 26;
        text->hash = (text->hash ^ text->bytes[i]) * 16777619u;
    }
    return text;
}

static NOINLINE void append(struct array *array, struct value value) {
    if (array->count == array->capacity) {
        array->capacity = array->capacity ? 2 * array->capacity : 8;
        array->items = HEAP_REALLOC(array->items, struct value, array->capacity);
    }
    array->items[array->count++] = value;
}

static NOINLINE struct slot *slot_of(struct record *record, uint32_t key) {
    for (unsigned i = 0; i < record->used; i++)
        if (record->slots[i].key == key) return &record->slots[i];
    if (record->used == 8) record->used = 7;
    struct slot *slot = &record->slots[record->used++];
    slot->key = key;
    slot->value.tag = NIL;
    return slot;
}

static struct value sum_of(struct value a, struct value b) {
    struct value sum = {INTEGER, {0}};
    if (a.tag == INTEGER && b.tag == INTEGER) sum.as.integer = a.as.integer + b.as.integer;
    else {
        sum.tag = REAL;
        sum.as.real = (a.tag == REAL ? a.as.real : (double)a.as.integer) +
                      (b.tag == REAL ? b.as.real : (double)b.as.integer);
    }
    return sum;
}

static NOINLINE void mark(struct value value) {
    if (value.tag != OBJECT || value.as.object->marked) return;
    struct object *object = value.as.object;
    object->marked = 1;
    object->age++;
    if (object->kind == ARRAY) {
        struct array *array = (struct array *)object;
        for (uint32_t i = 0; i < array->count; i++) mark(array->items[i]);
    } else if (object->kind == RECORD) {
        struct record *record = (struct record *)object;
        for (unsigned i = 0; i < record->used; i++) mark(record->slots[i].value);
    }
}

static NOINLINE void collect(struct machine *m) {
    for (struct value *v = m->stack; v < m->top; v++) mark(*v);
    for (struct object **link = &m->objects; *link;) {
        struct object *object = *link;
        if (object->marked) {
            object->marked = 0;
            link = &object->next;
            continue;
        }
        *link = object->next;
        m->live--;
        if (object->kind == ARRAY) HEAP_FREE(((struct array *)object)->items);
        HEAP_FREE(object);
    }
    m->collections++;
}

static NOINLINE struct value execute(struct machine *m) {
    const struct instruction *pc = program;
    m->frame = m->frames;
    m->frame->locals = m->stack;
    for (int i = 0; i < 8; i++) m->stack[i].tag = NIL;
    m->top = m->stack + 8;
    for (;; pc++) {
        struct value *top = m->top;
        m->executed[pc->operation]++;
        switch (pc->operation) {
        case PUSH: *m->top++ = (struct value){INTEGER, {pc->wide}}; break;
        case LOAD: *m->top++ = m->frame->locals[pc->small]; break;
        case STORE: m->frame->locals[pc->small] = *--m->top; break;
        case ADD:
            top[-2] = sum_of(top[-2], top[-1]);
            m->top--;
            break;
        case MULTIPLY:
            top[-2].as.integer *= top[-1].as.integer;
            m->top--;
            break;
        case LESS:
            top[-2].as.integer = top[-2].as.integer < top[-1].as.integer;
            m->top--;
            break;
        case JUMP: pc = program + pc->wide - 1; break;
        case JUMP_IF_NOT:
            if (!(--m->top)->as.integer) pc = program + pc->wide - 1;
            break;
        case NEW_ARRAY: {
            struct array *array = HEAP_CALLOC(struct array, 1);
            add_object(m, &array->object, ARRAY);
            *m->top++ = (struct value){OBJECT, {.object = &array->object}};
            break;
        }
        case APPEND:
            append((struct array *)top[-2].as.object, top[-1]);
            m->top -= 2;
            break;
        case AT: {
            const struct array *array = (struct array *)top[-2].as.object;
            top[-2] = array->items[top[-1].as.integer % array->count];
            m->top--;
            break;
        }
        case NEW_RECORD: {
            struct record *record = HEAP_CALLOC(struct record, 1);
            add_object(m, &record->object, RECORD);
            for (uint32_t key = 0; key < 5; key++)
                slot_of(record, key)->value = (struct value){REAL, {.real = 0.5}};
            *m->top++ = (struct value){OBJECT, {.object = &record->object}};
            break;
        }
        case SET_FIELD:
            slot_of((struct record *)top[-2].as.object, pc->small)->value = top[-1];
            m->top -= 2;
            break;
        case GET_FIELD:
            top[-1] = slot_of((struct record *)top[-1].as.object, pc->small)->value;
            break;
        case NEW_TEXT:
            *m->top++ = (struct value){OBJECT, {.object = &new_text(m, pc->wide)->object}};
            break;
        case LENGTH: {
            const struct text *text = (struct text *)top[-1].as.object;
            top[-1] = (struct value){INTEGER, {text->length + (text->hash & 3)}};
            break;
        }
        case CALL: {
            struct frame *frame = ++m->frame;
            frame->back = pc;
            frame->locals = top - 1;
            frame->calls++;
            pc = program + pc->wide - 1;
            break;
        }
        case RETURN:
            m->frame->locals[0] = top[-1];
            m->top = m->frame->locals + 1;
            pc = m->frame--->back;
            break;
        case POP: m->top--; break;
        case HALT: return m->frame->locals[2];
        }
    }
}

int main(int argc, char **argv) {
    tr_init(argc, argv);
    TR_GLOBAL(machine, "struct machine");
    TR_GLOBAL(program, "struct instruction []");
    TR_CHECK(struct machine, stack);
    TR_CHECK(struct record, slots);
    TR_CHECK(struct value, as);
    double sum = 0;
    while (tr_more()) {
        struct value result = execute(&machine);
        sum += result.tag == REAL ? result.as.real : (double)result.as.integer;
        if (machine.live > 1500) collect(&machine);
    }
    tr_sink = (uint64_t)sum;
    return 0;
}
