// Makes a function at run time that reads memory, and says what it is called: in /tmp/perf-PID.map
// ("map") or in DIR/jit-PID.dump ("dump"). The function is called until the third argument's number of
// calls is over, else for ever. The names are the fact: jit_reader, not jit_before.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// 1: mov (%rsi),%rax; dec %rdi; jnz 1b; ret
static const unsigned char code[] = {0x48, 0x8b, 0x06, 0x48, 0xff, 0xcf, 0x75, 0xf8, 0xc3};

static void map(unsigned char *at) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *file = fopen(path, "w");
    // What was there first, and what is there now.
    fprintf(file, "%lx %x jit_before\n", (unsigned long)at, 4096);
    fprintf(file, "%lx %zx jit_reader\n", (unsigned long)at, sizeof code);
    fclose(file);
}

static void dump(const char *dir, unsigned char *at) {
    char path[256];
    snprintf(path, sizeof path, "%s/jit-%d.dump", dir, getpid());
    int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0644);
    struct { uint32_t magic, version, size, machine, pad, pid; uint64_t time, flags; } header =
        {0x4A695444, 1, 40, 62, 0, (uint32_t)getpid(), 1, 0};
    static const char name[] = "jit_reader";
    struct { uint32_t id, size; uint64_t time; uint32_t pid, tid; uint64_t vma, address, len, index; } load =
        {0, 56 + sizeof name + sizeof code, 2, (uint32_t)getpid(), (uint32_t)getpid(),
         0, 0x10000, sizeof code, 1};
    struct { uint32_t id, size; uint64_t time; uint32_t pid, tid; uint64_t vma, from, to, len, index; } move =
        {1, 64, 3, (uint32_t)getpid(), (uint32_t)getpid(),
         (uint64_t)at, 0x10000, (uint64_t)at, sizeof code, 1};
    if (write(fd, &header, sizeof header) < 0 || write(fd, &load, sizeof load) < 0 ||
        write(fd, name, sizeof name) < 0 || write(fd, code, sizeof code) < 0 ||
        write(fd, &move, sizeof move) < 0)
        exit(1);
    // So it is found: as code, of which the kernel tells.
    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
}

int main(int argc, char **argv) {
    unsigned char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(at, code, sizeof code);
    if (strcmp(argv[1], "dump") == 0)
        dump(argv[2], at);
    else
        map(at);
    static long data[8];
    puts("ready");
    fflush(stdout);
    long n_calls = argc > 3 ? atol(argv[3]) : -1;
    while (n_calls--)
        ((void (*)(long, long *))at)(1000000, data);
    return 0;
}
