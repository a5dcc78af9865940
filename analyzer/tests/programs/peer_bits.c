/* Bit-fields that are read, tested and set, and unions whose arms have one size. */
#include "truth.h"

struct flags { unsigned a : 3, b : 5, c : 9, d : 7; signed e : 4; unsigned f : 4; long after; };
union word { long whole; double real; void *link; };
struct boxed { int id; union word word; };

struct flags flags;

FUNCTION unsigned get_a(struct flags *p) { return p->a; }
FUNCTION unsigned get_b(struct flags *p) { return p->b; }
FUNCTION unsigned get_c(struct flags *p) { return p->c; }
FUNCTION unsigned get_d(struct flags *p) { return p->d; }
FUNCTION int get_e(struct flags *p) { return p->e; }
FUNCTION int is_b(struct flags *p) { return p->b ? 3 : 4; }
FUNCTION void clear_a(struct flags *p) { p->a = 0; }
FUNCTION void fill_b(struct flags *p) { p->b = 31; }
FUNCTION void set_a(struct flags *p, unsigned a) { p->a = a; }
FUNCTION void set_b(struct flags *p, unsigned b) { p->b = b; }
FUNCTION unsigned both(struct flags *p) { return p->a * p->b; }
FUNCTION unsigned global_b(void) { return flags.b; }
FUNCTION long copy_word(struct boxed *b) { return b->word.whole; }
FUNCTION double half_word(struct boxed *b, double x) { return x * b->word.real; }
FUNCTION double word_at(union word *w, long i, double x) { return x * w[i].real; }

int main(void) {
    MEMBER(struct boxed, word);
    ADDRESS("flags", &flags);
    print_image();
    return 0;
}
