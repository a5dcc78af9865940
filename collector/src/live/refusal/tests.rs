//! Every errno, with the values that explain it.
