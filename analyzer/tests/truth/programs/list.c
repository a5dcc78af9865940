/* Linked lists and a hash table: dependent loads, short chains, allocation. */
#include <stdlib.h>

struct node { struct node *next; unsigned long key; long count; };
#define BUCKETS 32
static struct node *bucket[BUCKETS];
static long hits, misses;

static unsigned long random_state = 12345;
static unsigned long next_random(void)
{
    random_state = random_state * 6364136223846793005ul + 1442695040888963407ul;
    return random_state >> 33;
}

__attribute__((noinline)) static struct node *find(unsigned long key)
{
    for (struct node *p = bucket[key % BUCKETS]; p; p = p->next)
        if (p->key == key)
            return p;
    return NULL;
}

__attribute__((noinline)) static void insert(unsigned long key)
{
    struct node *p = find(key);
    if (p) {
        p->count++;
        hits++;
        return;
    }
    p = malloc(sizeof *p);
    p->key = key;
    p->count = 1;
    p->next = bucket[key % BUCKETS];
    bucket[key % BUCKETS] = p;
    misses++;
}

__attribute__((noinline)) static struct node *reverse(struct node *p)
{
    struct node *done = NULL;
    while (p) {
        struct node *next = p->next;
        p->next = done;
        done = p;
        p = next;
    }
    return done;
}

__attribute__((noinline)) static int erase(unsigned long key)
{
    struct node **link = &bucket[key % BUCKETS];
    while (*link) {
        struct node *p = *link;
        if (p->key == key) {
            *link = p->next;
            free(p);
            return 1;
        }
        link = &p->next;
    }
    return 0;
}

__attribute__((noinline)) static long sum(const struct node *p, long limit)
{
    long total = 0;
    for (; p && total < limit; p = p->next) {
        if (p->count & 1)
            total += p->count;
        else if (p->key > 100)
            total -= 1;
    }
    return total;
}

int main(void)
{
    long total = 0;
    for (int i = 0; i < 130; i++)
        insert(next_random() % 80);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < BUCKETS; i++) {
            bucket[i] = reverse(bucket[i]);
            total += sum(bucket[i], 1000);
        }
    for (int i = 0; i < 70; i++)
        total += erase(next_random() % 80);
    return (int)(total + hits + misses) & 1;
}
