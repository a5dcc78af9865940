/* Zstandard at work: compresses and expands made-up text at several levels. The argument is how
 * many rounds to do. */
#include "zstd.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE (4u << 20)

static unsigned long seed = 88172645463325252ul;

static unsigned long draw(unsigned long below)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed % below;
}

/* Words of which some are much more frequent than others, and numbers between them. */
static void make(char *text)
{
    char words[2000][12];
    for (int i = 0; i < 2000; i++) {
        int length = 2 + (int)draw(9);
        for (int j = 0; j < length; j++)
            words[i][j] = (char)('a' + draw(26));
        words[i][length] = 0;
    }
    for (size_t at = 0; at < SIZE - 32;) {
        unsigned long word = draw(2000) * draw(2000) / 2000;
        at += (size_t)sprintf(text + at, draw(20) ? "%s " : "%s %lu\n", words[word], draw(10000));
    }
}

int main(int argc, char **argv)
{
    static const int levels[] = { 1, 3, 6, 12, 17 };
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    size_t bound = ZSTD_compressBound(SIZE), sum = 0;
    char *text = calloc(1, SIZE), *packed = malloc(bound), *back = malloc(SIZE);
    ZSTD_CCtx *compressor = ZSTD_createCCtx();
    ZSTD_DCtx *expander = ZSTD_createDCtx();
    make(text);
    for (long i = 0; i < rounds; i++)
        for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
            size_t size = ZSTD_compressCCtx(compressor, packed, bound, text, SIZE, levels[l]);
            if (ZSTD_isError(size))
                return 1;
            sum += size;
            for (int times = 0; times < 20; times++)
                if (ZSTD_decompressDCtx(expander, back, SIZE, packed, size) != SIZE)
                    return 1;
        }
    if (memcmp(text, back, SIZE) != 0)
        return 1;
    printf("%zu bytes\n", sum);
    return 0;
}
