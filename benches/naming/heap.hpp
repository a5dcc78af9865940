/* heap.h for C++: an allocator for containers, and the type of what `new` makes within a scope. */
#pragma once
#include "heap.h"
#include "truth.hpp"
#include <memory>

namespace heap {

/* The name of T as debug information has it: with the arguments that the messages of compilers leave
 * out, and the enumerators by number where it has them so. */
template <class T> struct Name {
    static std::string get() {
        std::string name = tr_name<T>();
#ifndef __clang__
        const std::string enumerator = "__gnu_cxx::_S_atomic";
        size_t at = name.find(enumerator);
        if (at != name.npos) name.replace(at, enumerator.size(), "(__gnu_cxx::_Lock_policy)2");
#endif
        return name;
    }
};
template <class T> struct Name<std::unique_ptr<T>> {
    static std::string get() {
        std::string name = Name<T>::get();
        return "std::unique_ptr<" + name + ", std::default_delete<" + name + "> >";
    }
};

struct Current {
    const char *type;
    size_t element_bytes;
};
inline thread_local Current current{nullptr, 1};

/* The name of T for the truth runtime; lives as long as the program. */
template <class T> const char *name_of() {
    static const std::string *const name = [] {
        Current before = current;
        current = {nullptr, 1}; // the name itself is nothing that is told
        auto *made = new std::string(Name<T>::get());
        current = before;
        return made;
    }();
    return name->c_str();
}

/* While it lives, `new` of this thread makes Ts, if the size is a multiple of a T's. */
template <class T> class Of {
    Current before;

public:
    Of() : before(current) { current = {name_of<T>(), sizeof(T)}; }
    ~Of() { current = before; }
    Of(const Of &) = delete;
    Of &operator=(const Of &) = delete;
};

/* For containers: rebound to their nodes, it announces the nodes. */
template <class T> struct Alloc {
    using value_type = T;
    Alloc() = default;
    template <class U> Alloc(const Alloc<U> &) {}
    T *allocate(size_t n) {
        return static_cast<T *>(heap_take(name_of<T>(), sizeof(T), n * sizeof(T)));
    }
    void deallocate(T *p, size_t) { heap_give_back(p); }
    template <class U> bool operator==(const Alloc<U> &) const { return true; }
    template <class U> bool operator!=(const Alloc<U> &) const { return false; }
};

template <class T, class... A> std::unique_ptr<T> make(A &&...arguments) {
    Of<T> scope;
    return std::make_unique<T>(std::forward<A>(arguments)...);
}

} // namespace heap

void *operator new(size_t bytes) {
    bool known = heap::current.type && bytes % heap::current.element_bytes == 0;
    return heap_take(known ? heap::current.type : nullptr, heap::current.element_bytes, bytes);
}
void operator delete(void *block) noexcept { heap_give_back(block); }
void operator delete(void *block, size_t) noexcept { heap_give_back(block); }
