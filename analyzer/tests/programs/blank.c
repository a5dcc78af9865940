/* Serves: machine code that no compiler made. Functions of room for code, which is written over, between
   parameters and variables of many types. */
#include "truth.h"

#define ROOM __asm__ volatile(".skip 4000, 0x90")

struct point { int x, y; };
struct node { struct node *next; long key; struct point at; char name[12]; };
union word { long whole; struct { short low, high; } part; double real; };

struct node nodes[64];
long table[256];
union word words[8];
double matrix[4][4];
_Thread_local long local;

FUNCTION long by_node(struct node *node, long n) {
    ROOM;
    for (; node; node = node->next) n += node->key + node->at.y;
    return n;
}

FUNCTION double by_array(double (*rows)[4], const int *index, unsigned n) {
    double sum = 0;
    ROOM;
    for (unsigned i = 0; i < n; i++) sum += rows[index[i] & 3][i & 3];
    return sum;
}

FUNCTION long by_word(union word *word, char *text, void *any) {
    long frame[32] = {0};
    ROOM;
    for (int i = 0; i < 32; i++) frame[i] += word->part.low + text[i] + table[i] + local;
    return frame[(long)any & 31];
}

FUNCTION int by_case(int which, struct point *points) {
    ROOM;
    switch (which) {
    case 0: return points->x;
    case 1: return points->y + 7;
    case 2: return (int)table[points->x & 255];
    case 3: return nodes[points->y & 63].at.x;
    case 4: return points[3].x * 5;
    case 5: return (int)matrix[1][2];
    case 6: return words[2].part.high;
    default: return -1;
    }
}

int main(void) {
    ADDRESS("table", table);
    print_image();
    return 0;
}
