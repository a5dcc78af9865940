/* A bytecode interpreter twice (switch, computed goto) and a state machine: jump tables. */
enum { PUSH, ADD, SUB, MUL, DUP, SWAP, LOAD, STORE, JUMP_IF, DECREMENT, AND, SHIFT, HALT };

static const unsigned char program[] = {
    PUSH, 9, STORE, 0, PUSH, 1, STORE, 1,
    LOAD, 1, PUSH, 3, MUL, DUP, PUSH, 7, AND, ADD, STORE, 1,
    LOAD, 1, LOAD, 0, SWAP, SUB, SHIFT, 1, STORE, 2,
    DECREMENT, 0, LOAD, 0, JUMP_IF, 8, HALT,
};

struct machine { long stack[16]; long local[4]; int top; unsigned pc; long steps; };
static struct machine machine;

__attribute__((noinline)) static long run_switch(struct machine *m)
{
    m->top = 0;
    m->pc = 0;
    for (;;) {
        m->steps++;
        switch (program[m->pc++]) {
        case PUSH: m->stack[m->top++] = program[m->pc++]; break;
        case ADD: m->top--; m->stack[m->top - 1] += m->stack[m->top]; break;
        case SUB: m->top--; m->stack[m->top - 1] -= m->stack[m->top]; break;
        case MUL: m->top--; m->stack[m->top - 1] *= m->stack[m->top]; break;
        case DUP: m->stack[m->top] = m->stack[m->top - 1]; m->top++; break;
        case SWAP: {
            long t = m->stack[m->top - 1];
            m->stack[m->top - 1] = m->stack[m->top - 2];
            m->stack[m->top - 2] = t;
            break;
        }
        case LOAD: m->stack[m->top++] = m->local[program[m->pc++]]; break;
        case STORE: m->local[program[m->pc++]] = m->stack[--m->top]; break;
        case JUMP_IF: {
            unsigned to = program[m->pc++];
            if (m->stack[--m->top]) m->pc = to;
            break;
        }
        case DECREMENT: m->local[program[m->pc++]]--; break;
        case AND: m->top--; m->stack[m->top - 1] &= m->stack[m->top]; break;
        case SHIFT: m->stack[m->top - 1] >>= program[m->pc++]; break;
        case HALT: return m->local[2];
        default: return -1;
        }
    }
}

__attribute__((noinline)) static long run_goto(struct machine *m)
{
    static const void *const table[] = { &&push, &&add, &&sub, &&mul, &&dup, &&swap, &&load,
                                         &&store, &&jump_if, &&decrement, &&and, &&shift, &&halt };
    const unsigned char *pc = program;
    long *top = m->stack;
#define NEXT goto *table[*pc++]
    NEXT;
push: *top++ = *pc++; NEXT;
add: top--; top[-1] += top[0]; NEXT;
sub: top--; top[-1] -= top[0]; NEXT;
mul: top--; top[-1] *= top[0]; NEXT;
dup: top[0] = top[-1]; top++; NEXT;
swap: { long t = top[-1]; top[-1] = top[-2]; top[-2] = t; } NEXT;
load: *top++ = m->local[*pc++]; NEXT;
store: m->local[*pc++] = *--top; NEXT;
jump_if: { unsigned to = *pc++; if (*--top) pc = program + to; } NEXT;
decrement: m->local[*pc++]--; NEXT;
and: top--; top[-1] &= top[0]; NEXT;
shift: top[-1] >>= *pc++; NEXT;
halt: return m->local[2];
}

static const char text[] = "let x1 = 23 + foo(7, \"bar baz\"); // note\nif (x1 >= 0x1f) y = 'c';\n";
static long tokens[8];

__attribute__((noinline)) static void scan(const char *p)
{
    enum { START, NAME, NUMBER, STRING, COMMENT } state = START;
    for (; *p; p++)
        switch (state) {
        case START:
            switch (*p) {
            case ' ': case '\n': break;
            case '"': case '\'': state = STRING; break;
            case '/': state = COMMENT; break;
            case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7':
            case '8': case '9': state = NUMBER; break;
            case '+': case '=': case '>': case '(': case ')': case ';': case ',': tokens[5]++; break;
            default: state = NAME;
            }
            break;
        case NAME:
            if (*p == ' ' || *p == '(') { tokens[NAME]++; state = START; }
            break;
        case NUMBER:
            if (*p < '0' || *p > '9') { tokens[NUMBER]++; state = START; }
            break;
        case STRING:
            if (*p == '"' || *p == '\'') { tokens[STRING]++; state = START; }
            break;
        case COMMENT:
            if (*p == '\n') { tokens[COMMENT]++; state = START; }
            break;
        }
}

int main(void)
{
    long total = 0;
    for (int i = 0; i < 3; i++)
        total += run_switch(&machine);
    for (int i = 0; i < 6; i++)
        total += run_goto(&machine);
    for (int i = 0; i < 6; i++)
        scan(text);
    return (int)(total + tokens[1]) & 1;
}
