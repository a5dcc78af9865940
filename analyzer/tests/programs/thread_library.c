/* Thread-local variables of a library, reached by whatever way the flags ask for. Built as a library
 * it is what the program, built with -DPROGRAM, loads. */
#include "truth.h"

struct job { long n_done; int costs[4]; };
struct cache { long n; int slots[8]; };

#ifndef PROGRAM
__thread struct job current;
static __thread int own = 5;
static __thread int others[6];
static __thread struct cache *mine;

FUNCTION long done(void) { return current.n_done; }
FUNCTION int cost(long i) { return current.costs[i]; }
FUNCTION int bump(int by) { own += by; return own; }
FUNCTION int *place(long i) { own++; return &others[i]; }
FUNCTION int behind(int *p) { return p[0]; }
FUNCTION void use(struct cache *cache) { mine = cache; }
FUNCTION void put(long i, int x) { mine->slots[i] = x; }
FUNCTION void tell(void) {
    MEMBER(struct cache, slots);
    ADDRESS("current", &current); ADDRESS("own", &own); ADDRESS("others", others);
    ADDRESS("done", done);
}
#else
#include <dlfcn.h>
int main(int argc, char **argv) {
    (void)argc;
    char path[4096];
    snprintf(path, sizeof path, "%s.so", argv[0]);
    void *library = dlopen(path, RTLD_NOW);
    void (*tell)(void) = library ? (void (*)(void))dlsym(library, "tell") : 0;
    if (!tell) return 1;
    tell();
    print_image();
    return 0;
}
#endif
