// Layouts of all sorts. It prints `TYPE.MEMBER OFFSET SIZE` and `TYPE SIZE` as the compiler has them.
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct plain {
    char tag;
    long count;
    short low, high;
    int *next;
};

struct flags {
    int a : 3;
    unsigned b : 7;
    char c;
    long d : 40;
    long e : 20;
    _Bool f : 1;
    _Bool : 0;
    _Bool g : 1;
    short h;
    unsigned long m : 33;
};

struct __attribute__((packed)) tight {
    char c;
    int i;
    short b : 5;
    short e : 13;
    long z;
};

struct wide {
    char c;
    alignas(64) int n[3];
};

struct tail {
    int n;
    char flex[];
};

struct nothing {};

union either {
    int i;
    double d;
    struct {
        char x;
        int y;
    };
    struct flags f;
    char bytes[5];
};

struct nested {
    struct plain first;
    struct {
        int a;
        char b;
        union {
            char c;
            short s;
        };
    };
    union either either;
    struct plain many[3];
    struct nothing nothing;
    struct tight tight;
    void (*call)(int);
    int grid[2][3];
};

typedef struct {
    char letter;
    int number;
} unnamed_t;

typedef struct nested nested_t;

struct large {
    char head[60];
    long begins;
    char crosses[64];
    char rest[3];
};

static struct plain plain;
static struct flags flags;
static struct tight tight;
static struct wide wide;
static struct tail tail;
static struct nothing nothing;
static union either either;
static nested_t nested;
static unnamed_t unnamed;
static struct large large;

#define TYPE(name, type) printf("%s %zu\n", name, sizeof(type))
#define MEMBER(name, type, member) \
    printf("%s.%s %zu %zu\n", name, #member, offsetof(type, member), sizeof(((type *)0)->member))

int main(void) {
    const void *const kept[] = {&plain, &flags, &tight, &wide, &tail, &nothing,
                                &either, &nested, &unnamed, &large};
    TYPE("plain", struct plain);
    MEMBER("plain", struct plain, tag);
    MEMBER("plain", struct plain, count);
    MEMBER("plain", struct plain, low);
    MEMBER("plain", struct plain, high);
    MEMBER("plain", struct plain, next);
    TYPE("flags", struct flags);
    MEMBER("flags", struct flags, c);
    MEMBER("flags", struct flags, h);
    TYPE("tight", struct tight);
    MEMBER("tight", struct tight, i);
    MEMBER("tight", struct tight, z);
    TYPE("wide", struct wide);
    MEMBER("wide", struct wide, n);
    TYPE("tail", struct tail);
    TYPE("nothing", struct nothing);
    TYPE("either", union either);
    MEMBER("either", union either, d);
    MEMBER("either", union either, bytes);
    TYPE("nested", struct nested);
    MEMBER("nested", struct nested, first.next);
    MEMBER("nested", struct nested, either.d);
    MEMBER("nested", struct nested, either.f.h);
    MEMBER("nested", struct nested, many);
    MEMBER("nested", struct nested, tight.z);
    MEMBER("nested", struct nested, call);
    MEMBER("nested", struct nested, grid);
    TYPE("unnamed_t", unnamed_t);
    MEMBER("unnamed_t", unnamed_t, number);
    TYPE("large", struct large);
    MEMBER("large", struct large, begins);
    MEMBER("large", struct large, crosses);
    MEMBER("large", struct large, rest);
    return kept[0] == NULL;
}
