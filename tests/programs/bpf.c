// Loads a BPF program that does nothing, and has the kernel run it for a while: its code is in the kernel,
// and its name, which holds "dataspace_t", is what the kernel calls it. Says "no" where it may not.
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K}, {.code = BPF_JMP | BPF_EXIT}};
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
    attr.insns = (unsigned long)code;
    attr.insn_cnt = 2;
    attr.license = (unsigned long)"GPL";
    strcpy(attr.prog_name, "dataspace_t");
    int fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr);
    char in[64] = {0}, out[64];
    for (int i = 0; fd >= 0 && i < (argc > 1 ? atoi(argv[1]) : 1); i++) {
        memset(&attr, 0, sizeof attr);
        attr.test.prog_fd = fd;
        attr.test.data_in = (unsigned long)in;
        attr.test.data_size_in = sizeof in;
        attr.test.data_out = (unsigned long)out;
        attr.test.data_size_out = sizeof out;
        attr.test.repeat = 20000000;
        if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attr, sizeof attr) < 0)
            fd = -1;
    }
    if (fd < 0)
        puts("no");
    return 0;
}
