/* Calls that the compiler knows more of than the ABI says: of a function that leaves a register alone, and of one that
 * returns in it. */
#include "truth.h"

struct node { long first, second; } other;
__asm__(".text\n.type keep,@function\nkeep: xor %eax,%eax\n ret\n.size keep,.-keep\n"
        ".type relay,@function\nrelay: call keep\n ret\n.size relay,.-relay\n"
        ".type give,@function\ngive: lea other(%rip),%rcx\n ret\n.size give,.-give\n"
        ".type pass,@function\npass: call give\n ret\n.size pass,.-pass\n");
/* What comes back is a pointer to nothing. */
#define READ(function) \
    FUNCTION long read_by_##function(struct node *node) { \
        void *same; \
        __asm__ volatile("call " #function : "=c"(same) : "c"(node) : "rax", "memory"); \
        return ((long *)same)[1]; \
    }
READ(keep)
READ(relay)
READ(give)
READ(pass)

int main(void) {
    struct node node = {1, 2};
    print_image();
    printf("node.second %zu\n", offsetof(struct node, second));
    return read_by_keep(&node) + read_by_relay(&node) + read_by_give(&node) + read_by_pass(&node) != 4;
}
