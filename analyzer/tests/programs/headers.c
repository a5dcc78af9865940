/* Headers before the address by which strings are known, and characters before one that are of no header. */
#include "truth.h"
#include <stdint.h>
#include <string.h>

struct __attribute__((packed)) head8 { uint8_t len, room; unsigned char kind; };
struct __attribute__((packed)) head16 { uint16_t len, room; unsigned char kind; char text[]; };
struct __attribute__((packed)) head32 { uint32_t len, room; unsigned char kind; char text[]; };
/* These end in a byte too. */
struct entry { uint16_t next; unsigned char type; char name[]; };
struct pair { unsigned char first, last; };

#define HEAD(bits, s) ((struct head##bits *)((s) - sizeof(struct head##bits)))
#define GIVE(member) switch (s[-1] & 7) { \
        case 1: return HEAD(8, s)->member; \
        case 2: return HEAD(16, s)->member; \
        default: return HEAD(32, s)->member; \
    }
FUNCTION __attribute__((noinline)) size_t length(const char *s) { GIVE(len) }
FUNCTION __attribute__((noinline)) size_t room(const char *s) { GIVE(room) }
/* Ends of texts: characters. */
FUNCTION __attribute__((noinline)) int ends(const char *s) {
    return s[-1] == '\n' ? s[-2] == '\r' : s[-3] == 'x' && s[-2] == 'y';
}
/* A number in a text, which may begin anywhere. */
FUNCTION __attribute__((noinline)) int number(const char *s) {
    uint16_t word;
    memcpy(&word, s - 3, 2);
    return s[-1] == '\n' ? word : s[-4];
}

/* Ends of names, which are compared by the word. */
FUNCTION __attribute__((noinline)) int kind(const char *end) {
    return !memcmp(end - 3, ".gz", 3) || !memcmp(end - 5, ".html", 5) || end[-2] == '~';
}

int main(void) {
    struct pair pair = {1, 2};
    struct entry entry = {1, 2};
    struct head32 head = {4, 7, 3};
    char memory[32] = "";
    memcpy(memory, &head, sizeof head);
    const char *volatile at = memory + sizeof head;
    print_image();
    SIZE(struct head8); SIZE(struct head16); SIZE(struct head32);
    MEMBER(struct head8, len); MEMBER(struct head16, len); MEMBER(struct head32, len);
    MEMBER(struct head8, room); MEMBER(struct head16, room); MEMBER(struct head32, room);
    return length(at) + room(at) + (size_t)ends(at) + (size_t)number(at) + (size_t)kind(at) + pair.last + entry.type == 0;
}
