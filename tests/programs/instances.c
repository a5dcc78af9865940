/* Threads that each touch every page of an array of their own once, and say so: thread, first address, pages. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct page { long key; long count; char rest[4096 - 2 * sizeof(long)]; };

static struct page table[40];

struct work { int n_pages; struct page *pages; };

static void fill_keys(struct page *pages, int n_pages)
{
    for (int i = 0; i < n_pages; i++)
        pages[i].key = i;
}

__attribute__((noinline)) static void fill_counts(struct page *pages, int n_pages)
{
    for (int i = 0; i < n_pages; i++)
        pages[i].count = i;
}

static void *run(void *arg)
{
    struct work *work = arg;
    pthread_setname_np(pthread_self(), work->n_pages == 30 ? "thirty" : "seventy");
    if (work->n_pages == 30)
        fill_keys(work->pages, work->n_pages);
    else
        fill_counts(work->pages, work->n_pages);
    fprintf(stderr, "thread %d %p %d\n", gettid(), (void *)work->pages, work->n_pages);
    return NULL;
}

int main(void)
{
    int n_pages[] = { 30, 70 };
    for (int i = 0; i < 2; i++) {
        size_t size = (size_t)n_pages[i] * sizeof(struct page);
        int flags = MAP_PRIVATE | MAP_ANONYMOUS;
        struct work work = { n_pages[i], mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0) };
        madvise(work.pages, size, MADV_NOHUGEPAGE);
        pthread_t thread;
        pthread_create(&thread, NULL, run, &work);
        pthread_join(thread, NULL);
    }
    fill_counts(table, 40);
    fprintf(stderr, "table %p\n", (void *)table);
    return 0;
}
