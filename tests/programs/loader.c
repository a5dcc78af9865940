/* Loads a library when told so, and lets it work. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF || argc < 2)
        return 1;
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library)
        return 1;
    void (*run)(long) = (void (*)(long))dlsym(library, "plugin_run");
    for (;;)
        run(1000000);
}
