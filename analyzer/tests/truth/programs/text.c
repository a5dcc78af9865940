/* Strings and blocks of bytes: the C library's own assembly, and `rep` written out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char words[14][24];
static char big[1024], other[1024];
static size_t total;

__attribute__((noinline)) static size_t own_length(const char *s)
{
    const char *p = s;
    while (*p)
        p++;
    return (size_t)(p - s);
}

__attribute__((noinline)) static int own_compare(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a - *b;
}

static void rep_copy(void *to, const void *from, size_t n)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

static void rep_fill(void *to, long value, size_t n)
{
    __asm__ volatile("rep stosq" : "+D"(to), "+c"(n) : "a"(value) : "memory");
}

static size_t scan_for(const char *s, char c, size_t n)
{
    const char *p = s;
    __asm__ volatile("repne scasb" : "+D"(p), "+c"(n) : "a"(c) : "cc", "memory");
    return (size_t)(p - s);
}

__attribute__((noinline)) static void make_words(void)
{
    for (int i = 0; i < 14; i++)
        snprintf(words[i], sizeof words[i], "w%d-%x", i * 37 % 14, i * i);
}

__attribute__((noinline)) static char *join(void)
{
    static char line[2048];
    line[0] = 0;
    for (int i = 0; i < 14; i++) {
        strcat(line, words[i]);
        strcat(line, i % 3 ? "," : " ");
    }
    return line;
}

int main(void)
{
    make_words();
    for (int i = 0; i < 14; i++) {
        total += strlen(words[i]) + own_length(words[i]);
        for (int k = 0; k < i; k += 5)
            total += (strcmp(words[i], words[k]) < 0) + (own_compare(words[i], words[k]) < 0);
    }
    char *copy = strdup(join());
    for (char *word = strtok(copy, ", "); word; word = strtok(NULL, ", "))
        total += (size_t)strtol(word + 1, NULL, 10) + (strchr(word, '-') != NULL);
    for (int n = 1; n < 1024; n = n * 3 + 1) {
        memset(big, n, (size_t)n);
        memcpy(other, big, (size_t)n);
        memmove(other + 7, other, (size_t)n / 2);
        total += memcmp(other, big, (size_t)n) == 0;
        total += memchr(big, 0, sizeof big) != NULL;
    }
    rep_copy(big, other, 300);
    rep_fill(other, 0x20, 90);
    other[900] = 'x';
    total += scan_for(other, 'x', 1000);
    total += strstr(join(), "w11") != NULL;
    free(copy);
    return (int)total & 1;
}
