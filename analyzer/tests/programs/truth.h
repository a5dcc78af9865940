/* What a test program tells about itself: the truth that the analyzer's answers are held against. */
#include <stddef.h>
#include <stdio.h>

#define FUNCTION __attribute__((noipa, used))
#define MEMBER(type, member) printf(#type "." #member " %zu\n", offsetof(type, member))
#define SIZE(type) printf("sizeof " #type " %zu\n", sizeof(type))
#define ADDRESS(name, pointer) printf("&" name " %zu\n", (size_t)(pointer))

extern char __ehdr_start[];

static void print_image(void) {
    char line[4200];
    FILE *maps = fopen("/proc/self/maps", "r");
    ADDRESS("__ehdr_start", __ehdr_start);
    while (maps && fgets(line, sizeof line, maps)) printf("map %s", line);
}
