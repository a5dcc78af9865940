// Virtual functions: what they return is what the class declares, not what the slot of a table is described as.
#include "truth.h"

struct Node { long key; Node *next; };
struct Source {
    virtual ~Source() {}
    virtual bool is_open() const = 0;
    virtual Node *first() const = 0;
};
struct Sized { long n_nodes; virtual Node *last() const = 0; };
struct Chain : Source, Sized {
    Node *head;
    explicit Chain(Node *head) : head(head) {}
    bool is_open() const override;
    Node *first() const override;
    Node *last() const override;
};
FUNCTION bool Chain::is_open() const { return head != nullptr; }
FUNCTION Node *Chain::first() const { return head; }
FUNCTION Node *Chain::last() const { return head->next ? head->next : head; }

FUNCTION long read_first(const Source *source) { return source->first()->key + 1; }
FUNCTION long read_last(const Chain *chain) { return static_cast<const Sized *>(chain)->last()->key + 1; }

int main(int n, char **) {
    MEMBER(Node, key);
    print_image();
    Node node = {n, nullptr};
    Chain chain(&node);
    chain.n_nodes = 1;
    return read_first(&chain) + read_last(&chain) == 1000;
}
