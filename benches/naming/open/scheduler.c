/* A scheduler: run queues of intrusive lists, a hash of lists by pid, a tree of tasks, bit-fields.
 */
#include "../heap.h"

#define container_of(p, T, m) ((T *)((char *)(p)-offsetof(T, m)))
#define LEVELS 40
#define CPUS 4
#define PIDS 512

struct list {
    struct list *next, *prev;
};

struct hlist_node {
    struct hlist_node *next, **link;
};

struct hlist {
    struct hlist_node *first;
};

struct account {
    uint64_t ran, waited;
    unsigned switches;
};

struct task {
    int pid;
    unsigned state : 3, policy : 2, level : 6, traced : 1, slice : 12;
    struct list queued;
    struct hlist_node by_pid;
    struct account account;
    long weight;
    struct task *parent;
    struct list children, sibling;
    char name[16];
};

struct queue {
    struct list levels[LEVELS];
    uint64_t filled;
    unsigned length;
};

struct cpu {
    struct queue *active, *expired;
    struct queue queues[2];
    struct task *running;
    uint64_t clock;
    long load;
};

struct totals {
    unsigned long forks, exits, lookups, steps;
    unsigned ran_by_level[LEVELS];
};

static struct hlist pids[PIDS];
static struct cpu cpus[CPUS];
static struct totals totals;
static int next_pid = 1;

static void list_init(struct list *head) { head->next = head->prev = head; }

static void list_add_tail(struct list *entry, struct list *head) {
    entry->prev = head->prev;
    entry->next = head;
    head->prev->next = entry;
    head->prev = entry;
}

static void list_remove(struct list *entry) {
    entry->next->prev = entry->prev;
    entry->prev->next = entry->next;
    list_init(entry);
}

static void hlist_add(struct hlist_node *node, struct hlist *list) {
    node->next = list->first;
    if (node->next) node->next->link = &node->next;
    list->first = node;
    node->link = &list->first;
}

static void hlist_remove(struct hlist_node *node) {
    *node->link = node->next;
    if (node->next) node->next->link = node->link;
}

static NOINLINE void enqueue(struct queue *queue, struct task *task) {
    list_add_tail(&task->queued, &queue->levels[task->level]);
    queue->filled |= 1ull << task->level;
    queue->length++;
}

static NOINLINE struct task *dequeue_first(struct queue *queue) {
    if (!queue->filled) return NULL;
    int level = __builtin_ctzll(queue->filled);
    struct list *head = &queue->levels[level];
    struct task *task = container_of(head->next, struct task, queued);
    list_remove(&task->queued);
    if (head->next == head) queue->filled &= ~(1ull << level);
    queue->length--;
    return task;
}

static NOINLINE struct task *find_task(int pid) {
    totals.lookups++;
    for (struct hlist_node *n = pids[pid % PIDS].first; n; n = n->next) {
        struct task *task = container_of(n, struct task, by_pid);
        if (task->pid == pid) return task;
    }
    return NULL;
}

static NOINLINE struct task *fork_task(struct task *parent, struct cpu *cpu) {
    struct task *task = HEAP_CALLOC(struct task, 1);
    task->pid = next_pid++;
    task->level = tr_rand() % LEVELS;
    task->policy = task->pid & 3;
    task->slice = 10 + task->level;
    task->weight = 1024 >> (task->level / 8);
    task->parent = parent;
    memcpy(task->name, parent ? parent->name : "init", 5);
    list_init(&task->children);
    if (parent) list_add_tail(&task->sibling, &parent->children);
    else list_init(&task->sibling);
    hlist_add(&task->by_pid, &pids[task->pid % PIDS]);
    enqueue(cpu->active, task);
    totals.forks++;
    return task;
}

static NOINLINE void exit_task(struct task *task, struct task *reaper) {
    while (task->children.next != &task->children) {
        struct task *child = container_of(task->children.next, struct task, sibling);
        list_remove(&child->sibling);
        child->parent = reaper;
        list_add_tail(&child->sibling, &reaper->children);
    }
    list_remove(&task->sibling);
    hlist_remove(&task->by_pid);
    totals.exits++;
    HEAP_FREE(task);
}

static NOINLINE void run(struct cpu *cpu, unsigned steps) {
    while (steps--) {
        struct task *task = dequeue_first(cpu->active);
        if (!task) {
            struct queue *full = cpu->expired;
            cpu->expired = cpu->active;
            cpu->active = full;
            continue;
        }
        task->account.waited += cpu->clock - task->account.ran;
        cpu->running = task;
        cpu->clock += task->slice;
        task->account.ran += task->slice * task->weight;
        task->account.switches++;
        task->state = task->account.switches & 7;
        if (task->policy == 1 && task->level + 1 < LEVELS) task->level++;
        else if (task->level) task->level--;
        totals.ran_by_level[task->level]++;
        totals.steps++;
        enqueue(cpu->expired, task);
    }
}

static NOINLINE long load_of(struct cpu *cpu) {
    long load = 0;
    for (int i = 0; i < LEVELS; i++) {
        struct list *head = &cpu->active->levels[i];
        for (struct list *p = head->next; p != head; p = p->next)
            load += container_of(p, struct task, queued)->weight;
    }
    cpu->load = load;
    return load;
}

static NOINLINE uint64_t time_of_family(const struct task *task, int depth) {
    uint64_t sum = task->account.ran;
    for (const struct list *p = task->children.next; p != &task->children; p = p->next)
        if (depth) sum += time_of_family(container_of(p, struct task, sibling), depth - 1);
    return sum;
}

static NOINLINE void replace_tasks(struct task *init, unsigned count) {
    while (count--) {
        struct cpu *cpu = &cpus[tr_rand() % CPUS];
        struct task *task = dequeue_first(cpu->active);
        if (task && task != init) exit_task(task, init);
        else if (task) enqueue(cpu->active, task);
        fork_task(find_task(1 + tr_rand() % next_pid), cpu);
    }
}

int main(int argc, char **argv) {
    tr_init(argc, argv);
    TR_GLOBAL(pids, "struct hlist []");
    TR_GLOBAL(cpus, "struct cpu []");
    TR_GLOBAL(totals, "struct totals");
    TR_GLOBAL(next_pid, "int");
    TR_CHECK(struct task, account);
    TR_CHECK(struct task, sibling);
    TR_CHECK(struct cpu, load);
    for (int i = 0; i < CPUS; i++) {
        for (int k = 0; k < 2 * LEVELS; k++)
            list_init(&cpus[i].queues[k / LEVELS].levels[k % LEVELS]);
        cpus[i].active = &cpus[i].queues[0];
        cpus[i].expired = &cpus[i].queues[1];
    }
    struct task *init = fork_task(NULL, &cpus[0]);
    for (int i = 1; i < 3000; i++)
        fork_task(find_task(1 + tr_rand() % (next_pid - 1)), &cpus[i % CPUS]);
    uint64_t sum = 0;
    while (tr_more()) {
        for (int i = 0; i < CPUS; i++) run(&cpus[i], 1000);
        for (int i = 0; i < CPUS; i++) sum += load_of(&cpus[i]);
        for (int i = 0; i < 1000; i++) {
            struct task *task = find_task(1 + tr_rand() % next_pid);
            sum += task ? task->account.switches + task->name[2] : 0;
        }
        sum += time_of_family(init, 12);
        replace_tasks(init, 300);
    }
    tr_sink = sum;
    return 0;
}
