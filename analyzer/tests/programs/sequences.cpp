// Classes whose pointers lead to objects side by side, of whatever C++ library there is, and raw bytes.
#include <cstddef>
#include <deque>
#include <initializer_list>
#include <span>
#include <vector>

namespace shop {
struct Item { long key; float weight; };
struct Raw { std::byte one; unsigned char two; void *three; void **four; Item *five; };
Raw raw;
std::vector<Item> row;
std::deque<Item> queue;
std::vector<Item>::iterator here;
std::deque<Item>::iterator there;
std::span<Item> part;
std::initializer_list<Item> list;
} // namespace shop

int main() {
    using namespace shop;
    row.push_back({1, 2});
    queue.push_back({3, 4});
    here = row.begin();
    there = queue.begin();
    part = row;
    std::initializer_list<Item> here_only = {{5, 6}};
    list = here_only;
    return here->key + there->key + part[0].key + list.begin()->key != 1 + 3 + 1 + 5;
}
