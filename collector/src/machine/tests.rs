//! Trees of sysfs as kernels write them, read back.
