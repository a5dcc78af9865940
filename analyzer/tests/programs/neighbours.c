// Arrays side by side, of structures of one size: only the address tells over which of them a pointer goes that counts down.
#include "truth.h"

struct Word { long w; short v; };
struct Text { char w[14]; short v; };
struct Pair { int w[2]; short v; int x; };
struct Word words[8];
struct Word further_words[8];
struct Text texts[8];
struct Pair pairs[8];

#define DOWN(NAME)                                               \
    FUNCTION long NAME##_down(int n)                             \
    {                                                            \
        long sum = 0;                                            \
        for (int i = n; i-- > 0;) sum = sum * 31 + NAME[i].v;    \
        return sum;                                              \
    }
DOWN(words)
DOWN(further_words)
DOWN(texts)
DOWN(pairs)

int main(void)
{
    print_image();
    return (int)((words_down(8) + further_words_down(8) + texts_down(8) + pairs_down(8)) & 0);
}
