/* Sorting: the C library's with comparators, and four of our own. */
#include <stdlib.h>
#include <string.h>

struct person { const char *name; int age; double height; };
static struct person people[20];
static const char *names[] = { "ada", "bob", "cy", "dora", "eve", "fay", "gus", "hal" };
static int numbers[48], work[48];

static int by_age(const void *a, const void *b)
{
    const struct person *x = a, *y = b;
    return x->age - y->age;
}

static int by_name(const void *a, const void *b)
{
    const struct person *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    if (order)
        return order;
    return x->height < y->height ? -1 : x->height > y->height;
}

static int by_value(const void *a, const void *b)
{
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

__attribute__((noinline)) static void shuffle(unsigned seed)
{
    for (int i = 0; i < 48; i++) {
        seed = seed * 1103515245 + 12345;
        numbers[i] = (int)(seed >> 16) % 500;
    }
}

__attribute__((noinline)) static void insertion(int *x, int n)
{
    for (int i = 1; i < n; i++) {
        int value = x[i], k = i;
        while (k > 0 && x[k - 1] > value) {
            x[k] = x[k - 1];
            k--;
        }
        x[k] = value;
    }
}

__attribute__((noinline)) static void quick(int *x, int n)
{
    while (n > 8) {
        int pivot = x[n / 2], i = 0, k = n - 1;
        for (;;) {
            while (x[i] < pivot) i++;
            while (x[k] > pivot) k--;
            if (i >= k)
                break;
            int t = x[i];
            x[i++] = x[k];
            x[k--] = t;
        }
        quick(x, i);
        x += i;
        n -= i;
    }
    insertion(x, n);
}

__attribute__((noinline)) static void heap(int *x, int n)
{
    for (int start = n / 2 - 1, end = n; end > 1;) {
        if (start >= 0) {
            start--;
        } else {
            end--;
            int t = x[end];
            x[end] = x[0];
            x[0] = t;
        }
        int root = start < 0 ? 0 : start + 1;
        for (;;) {
            int child = 2 * root + 1;
            if (child >= end)
                break;
            if (child + 1 < end && x[child] < x[child + 1])
                child++;
            if (x[root] >= x[child])
                break;
            int t = x[root];
            x[root] = x[child];
            x[child] = t;
            root = child;
        }
    }
}

__attribute__((noinline)) static void merge(int *x, int n)
{
    if (n < 2)
        return;
    int half = n / 2;
    merge(x, half);
    merge(x + half, n - half);
    memcpy(work, x, (size_t)half * sizeof *x);
    int i = 0, k = half, to = 0;
    while (i < half && k < n)
        x[to++] = work[i] <= x[k] ? work[i++] : x[k++];
    while (i < half)
        x[to++] = work[i++];
}

int main(void)
{
    for (int i = 0; i < 20; i++) {
        people[i].name = names[i * 5 % 8];
        people[i].age = i * 29 % 31;
        people[i].height = 1.5 + i % 7 * 0.1;
    }
    qsort(people, 20, sizeof *people, by_age);
    qsort(people, 20, sizeof *people, by_name);
    long total = people[3].age;
    shuffle(1);
    quick(numbers, 48);
    shuffle(2);
    heap(numbers, 40);
    shuffle(3);
    merge(numbers, 48);
    for (int i = 0; i < 30; i++)
        total += bsearch(&i, numbers, 48, sizeof *numbers, by_value) != NULL;
    return (int)(total + numbers[5]) & 1;
}
