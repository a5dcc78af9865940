/* Members that only functions without types touch, through their arguments. */
#include "truth.h"

struct place { int x, y; };
struct employee { long id; char name[24]; struct place at; long *ends; int room; };

/* What the debug information says nothing of. */
__asm__(".text\n"
        ".globl touch\n.type touch,@function\ntouch:\n.cfi_startproc\n"
        "mov 32(%rdi),%eax\nret\n"
        ".cfi_endproc\n.size touch,.-touch\n"
        ".globl walk\n.type walk,@function\nwalk:\n.cfi_startproc\n"
        "push %rbx\n.cfi_adjust_cfa_offset 8\n"
        "1: add $1,%rdi\ncmpb $0,(%rdi)\njne 1b\n"
        "pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n"
        ".cfi_endproc\n.size walk,.-walk\n"
        ".globl swapped\n.type swapped,@function\nswapped:\n.cfi_startproc\n"
        "xchg %rdi,%rsi\n.byte 0xe9\n.long walk-.-4\n"
        ".cfi_endproc\n.size swapped,.-swapped\n");
int touch(void *at);
int walk(void *at);
int swapped(void *first, void *second);

#define FUNCTION __attribute__((noipa, used))
FUNCTION int pass_whole(struct employee *e) { return touch(e) + 1; }
FUNCTION int pass_name(struct employee *e) { return walk(e->name) + 1; }
FUNCTION int pass_place(struct employee *e) { return walk(&e->at) + 1; }
FUNCTION int pass_end(struct employee *e) { return walk(&e->ends) + 1; }
FUNCTION int pass_text(const char *text) { return walk((void *)text) + 1; }
FUNCTION int pass_void(void *at) { return walk(at) + 1; }
FUNCTION int pass_on(struct employee *e) { return pass_void(e->name) + 1; }
FUNCTION int pass_swapped(struct employee *e) { return swapped(0, e->name) + 1; }
FUNCTION int pass_last(struct employee *e) { return walk(e->name); }
FUNCTION int pass_before(struct employee *e) { return pass_last(e) + 1; }
FUNCTION int pass_pointer(struct employee *e, int (*to)(void *)) { return to(e->name) + 1; }

/* Bytes that are counted from a pointer to one, as Rust's `MaybeUninit<u8>` are. */
union byte { unsigned char value; };
struct sink { union byte *bytes; size_t n_bytes; };
FUNCTION int pass_rest(struct sink *to) { return walk(to->bytes + to->n_bytes) + 1; }

/* A local to which a pointer leads that nobody can follow. */
static size_t local_at, local_bytes;
FUNCTION int pass_local(long id) {
    struct employee local = { .id = id, .name = "nobody" };
    void *at = &local;
    char *stack_pointer;
    __asm__("mov %%rsp, %0" : "=r"(stack_pointer));
    local_at = (size_t)((char *)at - stack_pointer);
    local_bytes = sizeof local;
    __asm__("" : "+r"(at));
    int length = pass_void(at);
    __asm__ volatile("" : : "m"(local));
    return length;
}

/* The same where arguments are put below it for the call: by moves, or pushed. */
static size_t above_arguments;
struct badge { struct place at; char text[40]; };
#define HIDE(at) __asm__("" : "+r"(at))
#define INLINED_NOWHERE __attribute__((noinline)) FUNCTION
INLINED_NOWHERE int pass_moved(int a, int b, int c, int d, int e, int f, void *at, struct badge badge) {
    above_arguments = (size_t)((char *)at - ((char *)&badge - sizeof at));
    return walk(at) + 1;
}
INLINED_NOWHERE int put_moved(long id, struct badge *badge) {
    struct employee local = { .id = id, .name = "nobody" };
    void *at = &local;
    HIDE(at);
    int length = pass_moved(1, 2, 3, 4, 5, 6, at, *badge);
    __asm__ volatile("" : : "m"(local));
    return length;
}
INLINED_NOWHERE int pass_pushed(int a, int b, int c, int d, int e, int f, void *at, long last) {
    above_arguments = (size_t)((char *)at - (char *)__builtin_dwarf_cfa());
    return walk(at) + (int)last;
}
INLINED_NOWHERE int put_pushed(long id) {
    struct employee local = { .id = id, .name = "nobody" };
    void *at = &local;
    HIDE(at);
    int length = pass_pushed(1, 2, 3, 4, 5, 6, at, id);
    __asm__ volatile("" : : "m"(local));
    return length;
}

int main(void) {
    pass_local(1);
    struct badge badge = { .text = "1" };
    put_moved(1, &badge);
    printf("moved.at %zu\n", above_arguments);
    put_pushed(1);
    printf("pushed.at %zu\n", above_arguments);
    printf("local_at %zu\nlocal_bytes %zu\n", local_at, local_bytes);
    MEMBER(struct employee, name); MEMBER(struct employee, at); MEMBER(struct badge, text);
    print_image();
    return 0;
}
