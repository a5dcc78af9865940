/* Unions, bit-fields and arrays of every sort, each as a global whose parts have addresses. */
#include "truth.h"
#include <string.h>

struct pos { int x, y; };
struct key_event { int type; long when; int code; };
struct move_event { int type; long when; float dx, dy; };
union event { struct key_event key; struct move_event move; };
union word { long whole; double real; char bytes[8]; short half; void *link; };
union pair { struct { int first, second; } ints; long both; };
union clash { long a; unsigned long b; };
union vector { float lanes[4]; int words[4]; __int128 all; };
struct tagged { int tag; union { struct pos at; double value; union { char c; void *p; } inner; } as; };
struct flags { unsigned a : 3, b : 5, c : 8; unsigned : 16; unsigned d : 1; long wide : 40; };
struct packed { char kind; unsigned short run : 9, rest : 7; } __attribute__((packed));
struct open { long len; char kind; char data[]; };
struct wrapped { long id; struct open tail; };
struct zero { long n; struct pos cells[0]; };
struct grid { short header; int cells[3][4][5]; struct { struct pos at[2]; double w; } rows[3]; };

union event event;
union word word;
union pair pair;
union clash clash;
union vector vector;
struct tagged tagged[4];
struct flags flags;
struct packed packed;
struct open *open_one;
struct wrapped wrapped;
struct zero *zero;
struct grid grid[2];
int matrix[3][4][5];

/* The first bit and the width of what `set` sets. */
#define BITS(object, set) do { \
    size_t first = ~(size_t)0, width = 0; \
    memset(&object, 0, sizeof object); \
    set; \
    for (size_t bit = 0; bit < 8 * sizeof object; bit++) \
        if (((unsigned char *)&object)[bit / 8] >> bit % 8 & 1) { \
            if (first == ~(size_t)0) first = bit; \
            width++; \
        } \
    printf("first " #set " %zu\nwidth " #set " %zu\n", first, width); \
} while (0)

int main(void) {
    ADDRESS("event", &event); ADDRESS("event.key.type", &event.key.type);
    ADDRESS("event.key.when", &event.key.when); ADDRESS("event.key.code", &event.key.code);
    ADDRESS("event.move.dy", &event.move.dy);
    ADDRESS("word", &word); ADDRESS("pair", &pair); ADDRESS("pair.second", &pair.ints.second);
    ADDRESS("clash", &clash); ADDRESS("vector", &vector);
    ADDRESS("tagged[2].tag", &tagged[2].tag); ADDRESS("tagged[2].as", &tagged[2].as);
    ADDRESS("tagged[2].as.at.y", &tagged[2].as.at.y);
    ADDRESS("flags", &flags); ADDRESS("packed", &packed);
    ADDRESS("wrapped", &wrapped); ADDRESS("wrapped.tail.kind", &wrapped.tail.kind);
    ADDRESS("wrapped.tail.data", &wrapped.tail.data);
    MEMBER(struct open, data); SIZE(struct open); SIZE(struct wrapped);
    ADDRESS("grid[1].cells[2][3][4]", &grid[1].cells[2][3][4]);
    ADDRESS("grid[1].rows[2].at[1].y", &grid[1].rows[2].at[1].y);
    ADDRESS("grid[0].rows[1].w", &grid[0].rows[1].w);
    ADDRESS("matrix[2][3][4]", &matrix[2][3][4]);
    BITS(flags, flags.a = 7); BITS(flags, flags.b = 31); BITS(flags, flags.c = 255);
    BITS(flags, flags.d = 1); BITS(flags, flags.wide = -1);
    BITS(packed, packed.run = 511); BITS(packed, packed.rest = 127);
    (void)open_one; (void)zero;
    print_image();
    return 0;
}
