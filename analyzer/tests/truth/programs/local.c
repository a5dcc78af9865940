/* Variables of a thread (%fs), errno, the stack protector's canary, locale tables of the library. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct cache { long key, value; unsigned hits; };
static __thread long counter;
static __thread struct cache cache[16];
static __thread char buffer[64];
static __thread int depth;
__thread unsigned long generator = 88172645463325252ul;

__attribute__((noinline)) static unsigned long next_random(void)
{
    generator ^= generator << 13;
    generator ^= generator >> 7;
    generator ^= generator << 17;
    return generator;
}

__attribute__((noinline)) static long look_up(long key)
{
    struct cache *c = &cache[key & 15];
    if (c->key == key) {
        c->hits++;
        return c->value;
    }
    c->key = key;
    c->value = key * key;
    counter++;
    return c->value;
}

__attribute__((noinline)) static int nested(int n)
{
    depth++;
    int deepest = n > 0 ? nested(n - 1) : depth;
    depth--;
    return deepest;
}

__attribute__((noinline)) static long number(const char *text)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end)
        return -1;
    return value;
}

__attribute__((noinline, optimize("stack-protector-all"))) static int guarded(const char *text)
{
    char copy[24];
    strncpy(copy, text, sizeof copy - 1);
    copy[sizeof copy - 1] = 0;
    int n = 0;
    for (char *p = copy; *p; p++)
        n += isdigit((unsigned char)*p) ? 1 : toupper((unsigned char)*p) == 'X' ? 2 : 0;
    return n;
}

__attribute__((noinline)) static void format(long value)
{
    char *p = buffer + sizeof buffer - 1;
    *p = 0;
    do {
        *--p = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    memmove(buffer, p, strlen(p) + 1);
}

int main(void)
{
    static const char *const texts[] = { "12", "99999999999999999999", "x7", "4711", "1x2x3" };
    long total = 0;
    for (int i = 0; i < 200; i++)
        total += look_up((long)(next_random() % 24));
    for (int i = 0; i < 12; i++)
        total += nested(i);
    for (int i = 0; i < 15; i++) {
        total += number(texts[i % 5]) + guarded(texts[i % 5]);
        format(total & 0xffffff);
        total += buffer[0];
    }
    return (int)(total + counter) & 1;
}
