/* Two ways lead to one instruction, and only what they left in the frame tells which was taken. */
#include "truth.h"

struct left { long first, second; };
struct right { long key, value; };

/* By the first a load runs into it, by the second a jump. Each has saved its pointer. */
__attribute__((naked)) FUNCTION long joined(struct left *left, struct right *right, long n, long *to, long which) {
    __asm__("sub $0x40, %rsp\n"
            "test %r8, %r8\n"
            "jne 1f\n"
            "2: lea 4(%rdi), %rax\n"
            "mov %rax, 0x18(%rsp)\n"
            "mov 8(%rdi), %rax\n"
            "3: mov $7, %ecx\n"
            "dec %rdx\n"
            "jne 2b\n"
            "add $0x40, %rsp\n"
            "ret\n"
            "1: mov %rsi, 0x20(%rsp)\n"
            "mov 8(%rsi), %rax\n"
            "nop\n"
            "jmp 3b\n");
}

/* The same, but for stores in between: one elsewhere in the frame, one that is seen to go elsewhere, one that may go
   anywhere. */
__attribute__((naked)) FUNCTION long
stored(struct left *left, struct right *right, long n, long *to, long which) {
    __asm__("sub $0x40, %rsp\n"
            "test %r8, %r8\n"
            "jne 1f\n"
            "mov %rdi, 0x18(%rsp)\n"
            "movl $5, 0x24(%rsp)\n"
            "mov %rdx, (%rcx)\n"
            "mov 8(%rdi), %rax\n"
            "3: mov $7, %r8d\n"
            "add $0x40, %rsp\n"
            "ret\n"
            "1: mov %rsi, 0x30(%rsp)\n"
            "mov 8(%rcx), %rcx\n"
            "mov %rdx, (%rcx)\n"
            "mov %r9, %rcx\n"
            "jmp 3b\n");
}

/* Loads that overwrite their own base, each followed by a register that is set to 7. */
#define LOADS(name, code) \
    __attribute__((naked)) FUNCTION long name(struct right *right, long which, long n) { \
        __asm__(code "mov $7, %ecx\n" "ret\n"); \
    }
LOADS(of_sum, "lea 8(%rdi,%rsi,8), %rax\n" "nop\n" "mov 8(%rax), %rax\n")
LOADS(of_copy, "mov %rdi, %rax\n" "add $16, %rax\n" "sub %rsi, %rax\n" "mov (%rax), %rax\n")
LOADS(of_slot, "mov %r8, 0x18(%rsp)\n" "mov %rdx, %r8\n" "mov 0x18(%rsp), %rax\n" "mov 8(%rax), %rax\n")
LOADS(of_one, "mov %rdi, %rax\n" "dec %rdx\n" "jne 1f\n" "mov %rdi, %rax\n" "1: mov 8(%rax), %rax\n")
LOADS(of_either, "lea 8(%rdi), %rax\n" "dec %rdx\n" "jne 1f\n" "mov %rdi, %rax\n" "1: mov 8(%rax), %rax\n")
LOADS(of_chain, "mov %rdi, %rax\n" "1: mov (%rax), %rax\n" "dec %rdx\n" "jne 1b\n" "mov (%rax), %rax\n")
LOADS(of_part, "mov %rdi, %rax\n" "mov $1, %al\n" "mov 8(%rax), %rax\n")
LOADS(of_double, "mov %rdi, %rax\n" "add %rax, %rax\n" "mov 8(%rax), %rax\n")

int main(void) {
    MEMBER(struct left, second);
    print_image();
    return 0;
}
