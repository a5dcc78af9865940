//! The order of fallbacks, with the errnos of kernels that are not at hand.
