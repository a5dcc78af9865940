/* Objects that begin with a base, as which they are passed; and the casts that say what they are. */
#include "truth.h"

struct object { long count; void *type; };
typedef struct { struct object base; double value; } real;
typedef struct { struct object base; long n_items; } sized;
typedef struct { sized base; void *items[1]; } list;
struct text { struct object base; long length; unsigned kind : 3, is_ascii : 1; long hash; };
/* Many of one kind beside each other, and one that has no name of its own. */
struct runtime { long version; struct { struct text first, second, third; real zero; long after; } all; } runtime;

FUNCTION double read_real(struct object *it) { return ((real *)it)->value; }
FUNCTION long read_text(struct object *it) {
    struct text *text = (struct text *)it;
    return text->is_ascii ? text->hash : text->length;
}
FUNCTION void *read_list(struct object *it) { return ((list *)it)->items[0]; }
/* How many items follow nothing says; and an object that has a header before it. */
FUNCTION void *read_item(struct object *it, long at) { return ((list *)it)->items[at]; }
struct header { long marks, next; };
static inline void mark(struct header *header, long marks) { header->marks = marks + 1; }
FUNCTION struct header *mark_all(struct header *header) {
    for (; header->next; header = (struct header *)header->next)
        mark(header, ((struct object *)(header + 1))->count);
    return header;
}
FUNCTION long read_length(struct object *it) { return ((sized *)it)->n_items; }

int main(int n, char **words) {
    printf("real.value %zu\n", offsetof(real, value));
    printf("text.hash %zu\n", offsetof(struct text, hash));
    printf("text.length %zu\n", offsetof(struct text, length));
    printf("list.items %zu\n", offsetof(list, items));
    printf("sized.n_items %zu\n", offsetof(sized, n_items));
    printf("object.behind %zu\n", sizeof(struct header) + offsetof(struct object, count));
    print_image();
    runtime.all.zero.value = n;
    list some = {{{1, 0}, 1}, {words}};
    struct { struct header header; struct object object; } marked = {{0, 0}, {1, 0}};
    double sum = read_real(&runtime.all.zero.base) + (double)read_text(&runtime.all.first.base);
    return sum > 100 && read_list(&some.base.base) == words && read_length(&some.base.base) == 2
        && read_item(&some.base.base, n) == mark_all(&marked.header);
}
