/* A library that is loaded while its program already runs. */
struct plug { long hits; long pad[7]; };
static struct plug plugs[1024];

void plugin_run(long n)
{
    for (long i = 0; i < n; i++) {
        plugs[i & 1023].hits++;
        __asm__ volatile("" : : : "memory");
    }
}
