/* Recursion: a search tree with parents, tries, permutations, Ackermann's function. */
#include <stdlib.h>

struct tree { struct tree *left, *right, *parent; int key; unsigned height : 6, weight : 26; };
static struct tree pool[128];
static int n_used;

static unsigned height(const struct tree *t) { return t ? t->height : 0; }

static struct tree *rotate(struct tree *t, int is_left)
{
    struct tree *up = is_left ? t->right : t->left;
    if (is_left) {
        t->right = up->left;
        up->left = t;
    } else {
        t->left = up->right;
        up->right = t;
    }
    unsigned l = height(t->left), r = height(t->right);
    t->height = (l > r ? l : r) + 1;
    l = height(up->left), r = height(up->right);
    up->height = (l > r ? l : r) + 1;
    return up;
}

__attribute__((noinline)) static struct tree *add(struct tree *t, int key)
{
    if (!t) {
        t = &pool[n_used++];
        t->key = key;
        t->height = 1;
        return t;
    }
    if (key == t->key) {
        t->weight++;
        return t;
    }
    if (key < t->key)
        t->left = add(t->left, key);
    else
        t->right = add(t->right, key);
    unsigned l = height(t->left), r = height(t->right);
    t->height = (l > r ? l : r) + 1;
    if (l > r + 1) {
        if (height(t->left->left) < height(t->left->right))
            t->left = rotate(t->left, 1);
        return rotate(t, 0);
    }
    if (r > l + 1) {
        if (height(t->right->right) < height(t->right->left))
            t->right = rotate(t->right, 0);
        return rotate(t, 1);
    }
    return t;
}

__attribute__((noinline)) static long walk(struct tree *t, struct tree *parent)
{
    if (!t)
        return 0;
    t->parent = parent;
    return walk(t->left, t) + t->key * (long)t->weight + walk(t->right, t);
}

__attribute__((noinline)) static int depth(const struct tree *t)
{
    int n = 0;
    for (; t->parent; t = t->parent)
        n++;
    return n;
}

struct trie { struct trie *child[4]; int n; };
static struct trie tries[200];
static int n_tries = 1;

__attribute__((noinline)) static void put(struct trie *t, const char *s)
{
    while (*s) {
        struct trie **next = &t->child[*s++ & 3];
        if (!*next)
            *next = &tries[n_tries++];
        t = *next;
    }
    t->n++;
}

__attribute__((noinline)) static int ackermann(int m, int n)
{
    if (m == 0)
        return n + 1;
    if (n == 0)
        return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

static int order[5], n_orders;
__attribute__((noinline)) static void permute(int at)
{
    if (at == 5) {
        n_orders += order[0] < order[4];
        return;
    }
    for (int i = at; i < 5; i++) {
        int t = order[at];
        order[at] = order[i];
        order[i] = t;
        permute(at + 1);
        order[i] = order[at];
        order[at] = t;
    }
}

int main(void)
{
    struct tree *root = NULL;
    long total = 0;
    for (int i = 0; i < 50; i++)
        root = add(root, i * 41 % 67);
    total += walk(root, NULL);
    for (int i = 0; i < n_used; i++)
        total += depth(&pool[i]);
    char word[8] = "acgtacg";
    for (int i = 0; i < 24; i++) {
        for (int k = 0; k < 5; k++)
            word[k] = "acgt"[(i * 7 + k * i) & 3];
        put(tries, word);
    }
    for (int i = 0; i < 5; i++)
        order[i] = i;
    permute(0);
    return (int)(total + ackermann(2, 4) + n_orders + n_tries) & 1;
}
