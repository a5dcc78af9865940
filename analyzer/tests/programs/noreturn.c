/* Functions that never return, by what they call, and ones that do; it tells which do: each is called
 * in a process of its own. Linked where its symbols say (-no-pie). */
#include "truth.h"
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS(name, callee)                                                                         \
    ".globl " name "\n.type " name ", @function\n" name ":\n"                                       \
    "  sub $8, %rsp\n  call " callee "\n  add $8, %rsp\n  ret\n.size " name ", . - " name "\n"

/* A chain of calls that ends the process at its end. */
__asm__(".text\n" CALLS("chain_0", "chain_1") CALLS("chain_1", "chain_2") CALLS("chain_2", "chain_3")
        CALLS("chain_3", "chain_4") CALLS("chain_4", "chain_5") CALLS("chain_5", "chain_6")
        CALLS("chain_6", "_exit@plt") CALLS("chain_7", "*_exit@GOTPCREL(%rip)"));

/* Two that call each other: one of them ends the process if it comes back from the other. */
__asm__(CALLS("round_1", "round_0")
        ".globl round_0\n.type round_0, @function\nround_0:\n"
        "  sub $8, %rsp\n  mov $0, %eax\n  xchg %eax, is_round(%rip)\n  test %eax, %eax\n  je 1f\n"
        "  call round_1\n1:\n  xor %edi, %edi\n  call _exit@plt\n.size round_0, . - round_0\n"
        ".data\nis_round: .long 1\n.text\n");

/* A pointer among code to a function whose address, taken for code, is `ud2`. */
__asm__(CALLS("through_pointer", "*pointer(%rip)") "pointer: .quad comes_back\n"
        ".p2align 16\n.skip 0x0b0f\n"
        ".globl comes_back\n.type comes_back, @function\ncomes_back:\n  ret\n"
        ".size comes_back, . - comes_back\n");

#define EACH(ONE)                                                                                   \
    ONE(chain_0) ONE(chain_1) ONE(chain_2) ONE(chain_3) ONE(chain_4) ONE(chain_5) ONE(chain_6)        \
    ONE(chain_7) ONE(round_0) ONE(round_1) ONE(through_pointer) ONE(comes_back)
#define DECLARE(name) void name(int);
#define TELL(name) ADDRESS(#name, name), printf("returns " #name " %d\n", returns(name));

EACH(DECLARE)

static int returns(void (*function)(int)) {
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        function(0);
        _exit(7);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) exit(1);
    return WEXITSTATUS(status) == 7;
}

int main(void) {
    EACH(TELL)
    return 0;
}
