/* Types that two units share; in C++ they are in a name space. */
#include "truth.h"
#undef FUNCTION
#ifdef __cplusplus
#define FUNCTION extern "C" __attribute__((noinline, used))
namespace shop {
#else
#define FUNCTION __attribute__((noinline, used))
#endif

struct spot { int x, y; };
enum shade { DARK, LIGHT };
struct part {
    struct part *next;
    int weight;
    enum shade shade;
    struct spot spots[3];
    struct { int width, height; } box;
    const char *label;
};

#ifdef __cplusplus
}
using shop::part;
using shop::spot;
#endif

FUNCTION int far_weight(struct part *p);
FUNCTION int far_spot(struct part *p);
FUNCTION int far_later(struct part *p);
FUNCTION void far_tell(void);
FUNCTION int near_nothing(int n);
