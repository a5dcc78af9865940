// The standard library's containers: vectors, maps, hash tables, deques, strings.
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

struct Item { int id; std::string name; double weight; };

__attribute__((noinline)) static double total_weight(const std::vector<Item> &items)
{
    double sum = 0;
    for (const auto &item : items)
        if (item.id % 3)
            sum += item.weight;
    return sum;
}

__attribute__((noinline)) static std::map<std::string, int> count_words(const char *text)
{
    std::map<std::string, int> counts;
    std::string word;
    for (; *text; text++) {
        if (*text == ' ') {
            counts[word]++;
            word.clear();
        } else {
            word += *text;
        }
    }
    counts[word]++;
    return counts;
}

__attribute__((noinline)) static long breadth_first(int n)
{
    std::deque<int> queue{1};
    std::set<int> seen{1};
    long sum = 0;
    while (!queue.empty()) {
        int at = queue.front();
        queue.pop_front();
        sum += at;
        for (int next : {at * 2, at + 3})
            if (next < n && seen.insert(next).second)
                queue.push_back(next);
    }
    return sum;
}

__attribute__((noinline)) static int by_hash(const std::vector<Item> &items)
{
    std::unordered_map<int, const Item *> index;
    for (const auto &item : items)
        index.emplace(item.id * 7 % 23, &item);
    int n = 0;
    for (int i = 0; i < 23; i++)
        if (auto found = index.find(i); found != index.end())
            n += static_cast<int>(found->second->name.size());
    return n;
}

int main()
{
    std::vector<Item> items;
    for (int i = 0; i < 12; i++)
        items.push_back({i, "item number " + std::string(static_cast<size_t>(i % 9), 'x'), i * 0.5});
    long total = static_cast<long>(total_weight(items));
    auto counts = count_words("the cat and the dog and the bird saw a cat");
    for (const auto &[word, n] : counts)
        total += n * word[0];
    total += breadth_first(22) + by_hash(items);
    std::vector<std::vector<int>> triangle;
    for (size_t row = 0; row < 6; row++) {
        std::vector<int> line(row + 1, 1);
        for (size_t i = 1; i < row; i++)
            line[i] = triangle[row - 1][i - 1] + triangle[row - 1].at(i);
        triangle.push_back(std::move(line));
    }
    total += std::accumulate(triangle.back().begin(), triangle.back().end(), 0L);
    return static_cast<int>(total & 1);
}
