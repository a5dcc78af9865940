//! Machines to test with.
