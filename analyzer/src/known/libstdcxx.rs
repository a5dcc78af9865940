//! GNU's C++ library: its classes, and what its headers declare of functions that programs' containers call.

use crate::known::header::{Declaration, Function, Header, Type};

/// The library's declarations. Programs are compiled with these layouts and linked to these symbols, so neither can
/// change. Layouts and symbols are those of libstdc++ 12, but where another version is named.
pub(crate) static HEADERS: &[&Header] =
    &[&TREE, &LIST, &LIST_WITHOUT_DETAIL, &LIST_UNDER_DEBUG, &HASHTABLE];

/// Classes whose pointers lead to objects side by side, as their names begin. All seen in libstdc++ 12.
pub(crate) const SEQUENCES: [&str; 5] = [
    "std::_Vector_base<",
    "std::_Deque_iterator<",
    "std::span<",
    "std::initializer_list<",
    "__gnu_cxx::__normal_iterator<",
];

const BOOL: Type = Type::Number("bool", 1);
const FLOAT: Type = Type::Float("float", 4);
const UNSIGNED: Type = Type::Number("unsigned int", 4);
const UNSIGNED_LONG: Type = Type::Number("long unsigned int", 8);
const SIZE: Type = Type::Declared("std::size_t");

const TREE_NODE: Type = Type::Declared("std::_Rb_tree_node_base");
const TREE_NODE_POINTER: Type = Type::Pointer(&TREE_NODE);
const TREE_LINK: Type = Type::Declared("std::_Rb_tree_node_base::_Base_ptr");
const CONST_TREE_NODE: Type = Type::Const(&TREE_NODE);
const CONST_TREE_NODE_POINTER: Type = Type::Pointer(&CONST_TREE_NODE);

/// `std::map`, `std::set` and their like.
static TREE: Header = Header {
    name: "bits/stl_tree.h",
    types: &[
        ("std::_Rb_tree_color", Declaration::Enumeration { n_bytes: 4 }),
        (
            "std::_Rb_tree_node_base",
            Declaration::Structure {
                n_bytes: 32,
                members: &[
                    ("_M_color", 0, Type::Declared("std::_Rb_tree_color")),
                    ("_M_parent", 8, TREE_LINK),
                    ("_M_left", 16, TREE_LINK),
                    ("_M_right", 24, TREE_LINK),
                ],
            },
        ),
        ("std::_Rb_tree_node_base::_Base_ptr", Declaration::Alias(TREE_NODE_POINTER)),
    ],
    functions: &[
        Function {
            symbol: "_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base",
            name: "std::_Rb_tree_increment",
            result: Some(TREE_NODE_POINTER),
            parameters: &[("__x", TREE_NODE_POINTER)],
        },
        Function {
            symbol: "_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base",
            name: "std::_Rb_tree_increment",
            result: Some(CONST_TREE_NODE_POINTER),
            parameters: &[("__x", CONST_TREE_NODE_POINTER)],
        },
        Function {
            symbol: "_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base",
            name: "std::_Rb_tree_decrement",
            result: Some(TREE_NODE_POINTER),
            parameters: &[("__x", TREE_NODE_POINTER)],
        },
        Function {
            symbol: "_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base",
            name: "std::_Rb_tree_decrement",
            result: Some(CONST_TREE_NODE_POINTER),
            parameters: &[("__x", CONST_TREE_NODE_POINTER)],
        },
        Function {
            symbol: "_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_",
            name: "std::_Rb_tree_insert_and_rebalance",
            result: None,
            parameters: &[
                ("__insert_left", BOOL),
                ("__x", TREE_NODE_POINTER),
                ("__p", TREE_NODE_POINTER),
                ("__header", Type::Reference(&TREE_NODE)),
            ],
        },
        Function {
            symbol: "_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_",
            name: "std::_Rb_tree_rebalance_for_erase",
            result: Some(TREE_NODE_POINTER),
            parameters: &[("__z", TREE_NODE_POINTER), ("__header", Type::Reference(&TREE_NODE))],
        },
        Function {
            symbol: "_ZSt20_Rb_tree_rotate_leftPSt18_Rb_tree_node_baseRS0_",
            name: "std::_Rb_tree_rotate_left",
            result: None,
            parameters: &[
                ("__x", TREE_NODE_POINTER),
                ("__root", Type::Reference(&TREE_NODE_POINTER)),
            ],
        },
        Function {
            symbol: "_ZSt21_Rb_tree_rotate_rightPSt18_Rb_tree_node_baseRS0_",
            name: "std::_Rb_tree_rotate_right",
            result: None,
            parameters: &[
                ("__x", TREE_NODE_POINTER),
                ("__root", Type::Reference(&TREE_NODE_POINTER)),
            ],
        },
        Function {
            symbol: "_ZSt20_Rb_tree_black_countPKSt18_Rb_tree_node_baseS1_",
            name: "std::_Rb_tree_black_count",
            result: Some(UNSIGNED),
            parameters: &[("__node", CONST_TREE_NODE_POINTER), ("__root", CONST_TREE_NODE_POINTER)],
        },
    ],
};

/// `std::list` of one name space. `$first` and `$second` are how the node is spelled in symbols, which name
/// again what they named before by its number (Itanium C++ ABI, 5.1.8).
macro_rules! list {
    ($structure:literal, $scope:literal, $first:literal, $second:literal) => {{
        const NODE: Type = Type::Declared($structure);
        const POINTER: Type = Type::Pointer(&NODE);
        const REFERENCE: Type = Type::Reference(&NODE);
        macro_rules! function {
            ($name:literal, $symbol:expr, $parameters:expr) => {
                Function {
                    symbol: $symbol,
                    name: concat!($structure, "::", $name),
                    result: None,
                    parameters: $parameters,
                }
            };
        }
        const ONE: &[(&str, Type)] = &[("this", POINTER)];
        const TWO: &[(&str, Type)] = &[("this", POINTER), ("__position", POINTER)];
        const THREE: &[(&str, Type)] =
            &[("this", POINTER), ("__first", POINTER), ("__last", POINTER)];
        Header {
            name: "bits/stl_list.h",
            types: &[(
                $structure,
                Declaration::Structure {
                    n_bytes: 16,
                    members: &[("_M_next", 0, POINTER), ("_M_prev", 8, POINTER)],
                },
            )],
            functions: &[
                function!(
                    "swap",
                    concat!($scope, "4swapER", $first, $second),
                    &[("__x", REFERENCE), ("__y", REFERENCE)]
                ),
                function!("_M_hook", concat!($scope, "7_M_hookEP", $first), TWO),
                function!("_M_unhook", concat!($scope, "9_M_unhookEv"), ONE),
                function!("_M_reverse", concat!($scope, "10_M_reverseEv"), ONE),
                function!(
                    "_M_transfer",
                    concat!($scope, "11_M_transferEP", $first, $second),
                    THREE
                ),
                // As they were called before gcc 4.5.
                function!("hook", concat!($scope, "4hookEP", $first), TWO),
                function!("unhook", concat!($scope, "6unhookEv"), ONE),
                function!("reverse", concat!($scope, "7reverseEv"), ONE),
                function!("transfer", concat!($scope, "8transferEP", $first, $second), THREE),
            ],
        }
    }};
}

static LIST: Header =
    list!("std::__detail::_List_node_base", "_ZNSt8__detail15_List_node_base", "S0_", "S1_");

/// Before gcc 4.5.
static LIST_WITHOUT_DETAIL: Header =
    list!("std::_List_node_base", "_ZNSt15_List_node_base", "S_", "S0_");

/// The same where `_GLIBCXX_DEBUG` was defined.
static LIST_UNDER_DEBUG: Header =
    list!("std::__cxx1998::_List_node_base", "_ZNSt9__cxx199815_List_node_base", "S0_", "S1_");

const POLICY: Type = Type::Declared("std::__detail::_Prime_rehash_policy");
const CONST_POLICY: Type = Type::Const(&POLICY);
const CONST_POLICY_POINTER: Type = Type::Pointer(&CONST_POLICY);

/// `std::unordered_map` and its like.
static HASHTABLE: Header = Header {
    name: "bits/hashtable_policy.h",
    types: &[
        ("std::size_t", Declaration::Alias(UNSIGNED_LONG)),
        (
            "std::__detail::_Prime_rehash_policy",
            Declaration::Structure {
                n_bytes: 16,
                members: &[("_M_max_load_factor", 0, FLOAT), ("_M_next_resize", 8, SIZE)],
            },
        ),
    ],
    functions: &[
        Function {
            symbol: "_ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm",
            name: "std::__detail::_Prime_rehash_policy::_M_next_bkt",
            result: Some(SIZE),
            parameters: &[("this", CONST_POLICY_POINTER), ("__n", SIZE)],
        },
        // It returns a pair of numbers.
        Function {
            symbol: "_ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm",
            name: "std::__detail::_Prime_rehash_policy::_M_need_rehash",
            result: None,
            parameters: &[
                ("this", CONST_POLICY_POINTER),
                ("__n_bkt", SIZE),
                ("__n_elt", SIZE),
                ("__n_ins", SIZE),
            ],
        },
    ],
};
