// Nodes of the standard containers, whose links the C++ library's own functions follow.
#include "truth.h"
#include <list>
#include <map>
#include <unordered_map>

typedef std::_Rb_tree_node_base TreeNode;
typedef std::__detail::_List_node_base ListNode;
typedef std::__detail::_Prime_rehash_policy Policy;

extern "C" {
FUNCTION int color(TreeNode *node) { return node->_M_color; }
FUNCTION TreeNode *parent(TreeNode *node) { return node->_M_parent; }
FUNCTION TreeNode *left(TreeNode *node) { return node->_M_left; }
FUNCTION TreeNode *right(TreeNode *node) { return node->_M_right; }
FUNCTION ListNode *next(ListNode *node) { return node->_M_next; }
FUNCTION ListNode *previous(ListNode *node) { return node->_M_prev; }
FUNCTION float most(Policy *policy) { return policy->_M_max_load_factor; }
FUNCTION size_t resize(Policy *policy) { return policy->_M_next_resize; }
}

int main() {
    std::map<int, int> numbers = {{1, 2}, {3, 4}};
    std::list<int> few = {1, 2};
    std::unordered_map<int, int> more = {{1, 2}};
    few.reverse();
    few.pop_back();
    numbers.erase(1);
    more[5] = 6;
    TreeNode *(*increment)(TreeNode *) = std::_Rb_tree_increment;
    TreeNode *(*decrement)(TreeNode *) = std::_Rb_tree_decrement;
    decrement(increment(numbers.begin()._M_node));
    ADDRESS("_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base", increment);
    MEMBER(TreeNode, _M_color);
    MEMBER(TreeNode, _M_parent);
    MEMBER(TreeNode, _M_left);
    MEMBER(TreeNode, _M_right);
    MEMBER(ListNode, _M_next);
    MEMBER(ListNode, _M_prev);
    MEMBER(Policy, _M_max_load_factor);
    MEMBER(Policy, _M_next_resize);
    print_image();
}
