/* Accesses of one watched member by instructions of every form, each at a known address and a known
 * number of times: once a round, many with a branch target right behind. Argument 1 says where the
 * member is (global, element, heap), argument 2 the number of rounds. Prints the address of the
 * member and of each instruction. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct box { long before[4]; long watched; long behind[7]; };

struct box box __attribute__((aligned(64)));
static struct box boxes[8] __attribute__((aligned(64)));
static struct box *target = &box;
static struct box other __attribute__((aligned(64)));
static volatile long sink;
static long scratch[64] __attribute__((aligned(64)));

struct form { char *address; const char *name; };
/* The linker makes these of the section's name. */
extern struct form __start_forms[], __stop_forms[];

#define HERE(NAME)                                                                                 \
    "\n.pushsection forms, \"aw\"\n.quad 1b, 9f\n.popsection\n"                                    \
    ".pushsection .rodata\n9: .asciz \"" #NAME "\"\n.popsection\n"

/* Runs TEXT with p at the member, q at another box's member, s and d at scratch memory. The access
 * stands at label 1. */
#define FORM(NAME, TEXT)                                                                           \
    __attribute__((noinline)) static void NAME(long i)                                             \
    {                                                                                              \
        long *p = &target->watched, *q = &other.watched;                                               \
        __asm__ volatile(TEXT HERE(NAME)                                                           \
                         : [p] "+b"(p), [q] "+r"(q), [i] "+r"(i)                                   \
                         : [s] "r"(scratch)                                                        \
                         : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "xmm0", "xmm1", "xmm2",        \
                           "memory", "cc");                                                        \
    }

FORM(load, "1: mov (%[p]), %%rax\n add $1, %%rax")
FORM(load_indexed, "mov $2, %%ecx\n 1: mov -16(%[p],%%rcx,8), %%rax\n mov $0, %%ecx")
FORM(load_over_base, "mov %[p], %%rax\n 1: mov (%%rax), %%rax\n inc %%rax")
FORM(load_over_index, "mov $1, %%eax\n 1: mov -8(%[p],%%rax,8), %%rax\n inc %%rax")
FORM(load_byte, "1: movzbl 3(%[p]), %%eax\n inc %%eax")
FORM(load_signed, "1: movswq 2(%[p]), %%rax\n inc %%rax")
FORM(load_add, "1: add (%[p]), %%rax\n imul %%rax, %%rax")
FORM(load_sse, "1: movups (%[p]), %%xmm0\n movaps %%xmm0, %%xmm1")
FORM(load_across, "1: movups -8(%[p]), %%xmm0\n movaps %%xmm0, %%xmm1")
FORM(load_avx, "1: vmovdqu -8(%[p]), %%ymm0\n vzeroupper")
FORM(operand_avx, "1: vaddps (%[p]), %%ymm0, %%ymm0\n vzeroupper")
FORM(store, "1: mov %[i], (%[p])\n add $1, %[i]")
FORM(store_constant, "1: movl $7, 4(%[p])\n add $1, %[i]")
FORM(store_sse, "1: movups %%xmm0, (%[p])\n add $1, %[i]")
FORM(store_streaming, "1: movnti %[i], (%[p])\n sfence")
FORM(update_add, "1: addq $1, (%[p])\n mov %[i], %%rax")
FORM(update_inc, "1: incl (%[p])\n mov %[i], %%rax")
FORM(update_locked, "1: lock subq $1, (%[p])\n mov %[i], %%rax")
FORM(update_not, "1: notq (%[p])\n mov %[i], %%rax")
FORM(update_shift, "1: shlq $1, (%[p])\n mov %[i], %%rax")
FORM(exchange, "1: xchg %[i], (%[p])\n mov %[i], %%rax")
FORM(exchange_add, "1: lock xadd %[i], (%[p])\n mov %[i], %%rax")
FORM(compare_exchange_done, "mov (%[s]), %%rcx\n xor %%eax, %%eax\n"
     "lock cmpxchg %%rcx, 8(%[s])\n 1: lock cmpxchg %%rcx, (%[p])\n mov %[i], %%rdx")
FORM(compare_branch, "1: cmpq $-1, (%[p])\n jne 2f\n nop\n 2: inc %[i]")
FORM(compare_register_branch, "1: cmp %[i], (%[p])\n jle 2f\n nop\n 2: inc %[i]")
FORM(test_branch, "1: testl $1, (%[p])\n jz 2f\n nop\n 2: inc %[i]")
FORM(bit_test, "1: btq $5, (%[p])\n setc %%al")
FORM(set_byte, "test %[i], %[i]\n 1: setz 1(%[p])\n inc %[i]")
FORM(move_if, "test %[i], %[i]\n 1: cmovz (%[p]), %%rax\n inc %[i]")
FORM(push_memory, "1: push (%[p])\n pop %%rax")
FORM(pop_memory, "push %[i]\n 1: pop (%[p])\n inc %[i]")
FORM(string_load, "mov %[p], %%rsi\n 1: lodsq\n inc %[i]")
FORM(string_store, "mov %[p], %%rdi\n mov %[i], %%rax\n 1: stosq\n inc %[i]")
FORM(string_copy_from, "mov %[p], %%rsi\n mov %[s], %%rdi\n 1: movsq\n inc %[i]")
FORM(string_copy_to, "mov %[p], %%rdi\n mov %[s], %%rsi\n 1: movsq\n inc %[i]")
FORM(string_scan, "mov %[p], %%rdi\n 1: scasq\n inc %[i]")
FORM(repeated_copy_from, "lea -32(%[p]), %%rsi\n mov %[s], %%rdi\n mov $12, %%ecx\n 1: rep movsq\n"
     "inc %[i]")
FORM(repeated_copy_to, "lea -32(%[p]), %%rdi\n mov %[s], %%rsi\n mov $12, %%ecx\n 1: rep movsq\n"
     "inc %[i]")
FORM(repeated_store, "lea -32(%[p]), %%rdi\n mov $12, %%ecx\n 1: rep stosq\n inc %[i]")
FORM(repeated_store_last, "lea -32(%[p]), %%rdi\n mov $5, %%ecx\n 1: rep stosq\n inc %[i]")
FORM(before_join, "test $3, %[i]\n jz 2f\n nop\n 1: mov (%[p]), %%rax\n 2: inc %[i]\n"
     ".subsection 1\n 3: jmp 2b\n .previous")
FORM(before_loop, "mov $3, %%ecx\n 1: mov (%[p]), %%rax\n 2: dec %%ecx\n jnz 2b")
FORM(before_jump, "jmp 1f\n 2: mov (%[q]), %%rax\n jmp 3f\n 1: mov (%[p]), %%rax\n jmp 3f\n 3: inc %[i]")
FORM(after_other, "test %[i], %[i]\n js 2f\n mov (%[q]), %%rax\n 1: mov (%[p]), %%rax\n"
     "2: mov (%[q]), %%rdx\n inc %[i]")
FORM(call_behind, "1: mov (%[p]), %%rax\n call 2f\n jmp 3f\n 2: ret\n 3: inc %[i]")
FORM(return_behind, "call 2f\n jmp 3f\n 2: 1: mov (%[p]), %%rax\n ret\n 3: inc %[i]")

/* Plain C on the same member, by whatever instructions the compiler takes. */
#define KEPT __asm__ volatile("" : : : "memory")

__attribute__((noinline)) static long c_load(struct box *b, long i) { KEPT; return b->watched + i; }
__attribute__((noinline)) static void c_store(struct box *b, long i) { b->watched = i; KEPT; }
__attribute__((noinline)) static long c_branch(struct box *b, long i)
{
    KEPT;
    if (b->watched == i)
        return 1;
    KEPT;
    return b->behind[0];
}
__attribute__((noinline)) static long c_switch(struct box *b, long i)
{
    long sum = other.watched;
    switch (i & 3) {
    case 0: sum += b->behind[1]; break;
    case 1: sum ^= other.behind[2]; break;
    case 2: sum -= b->before[1]; break;
    default: sum *= 3;
    }
    KEPT;
    return sum + b->watched;
}
__attribute__((noinline)) static long c_search(struct box *boxes, long i)
{
    long n = 0;
    for (struct box *b = boxes; b < boxes + 1; b++)
        if (b->watched > i)
            n++;
    KEPT;
    return n;
}
__attribute__((noinline)) static void c_copy(struct box *to, const struct box *from)
{
    KEPT;
    to->watched = from->watched;
    KEPT;
}

typedef void (*run)(long);
static const run runs[] = {
    load, load_indexed, load_over_base, load_over_index, load_byte, load_signed,
    load_add, load_sse, load_across, load_avx, operand_avx, store, store_constant, store_sse,
    store_streaming, update_add, update_inc, update_locked, update_not, update_shift, exchange,
    exchange_add, compare_exchange_done, compare_branch, compare_register_branch, test_branch,
    bit_test, set_byte, move_if, push_memory, pop_memory, string_load, string_store,
    string_copy_from, string_copy_to, string_scan, repeated_copy_from, repeated_copy_to,
    repeated_store, repeated_store_last, before_join, before_loop, before_jump, after_other,
    call_behind, return_behind,
};

/* The kernel limits samples by the tick: let a hit have its time. */
static void rest(void)
{
    for (int i = 0; i < 200; i++)
        __asm__ volatile("pause");
}

int main(int argc, char **argv)
{
    /* A heap whose address is known before the program runs. */
    struct box *heap = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    long n_rounds = argc > 2 ? strtol(argv[2], NULL, 0) : 0;
    if (argc < 2 || heap == MAP_FAILED)
        return 1;
    target = !strcmp(argv[1], "heap") ? heap + 5 : !strcmp(argv[1], "element") ? boxes + 3 : &box;
    printf("member %p\n", (void *)&target->watched);
    for (struct form *form = __start_forms; form < __stop_forms; form++)
        printf("form %p %s\n", (void *)form->address, form->name);
    fflush(stdout);
    for (long round = 0; round < n_rounds; round++) {
        long i = 1 + 4 * round;
        for (unsigned at = 0; at < sizeof runs / sizeof *runs; at++, rest())
            runs[at](i);
        sink += c_load(target, i), rest();
        c_store(target, i), rest();
        sink += c_branch(target, i), rest();
        sink += c_switch(target, i), rest();
        sink += c_search(target, i), rest();
        c_copy(target, &other), rest();
        c_copy(&other, target), rest();
    }
    return 0;
}
