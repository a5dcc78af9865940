//! Hints to the processor which memory is needed soon: rings come from another CPU's cache, slots from the
//! analyzer's.

/// Bytes in a cache line of every x86-64 processor.
const LINE_BYTES: usize = 64;

/// Asks for the first `n_bytes` of `value`, to be read.
#[inline]
pub(crate) fn to_read<T: ?Sized>(value: &T, n_bytes: usize) {
    let n_bytes = n_bytes.min(size_of_val(value));
    for at in (0..n_bytes).step_by(LINE_BYTES) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch has no effect but on caches, whatever the address (SDM volume 2, PREFETCHh); this
        // one is inside of `value`.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast::<i8>().add(at));
        }
    }
}

/// Asks for the first `n_bytes` of `value`, to be written over.
#[inline]
pub(crate) fn to_write<T>(value: &T, n_bytes: usize) {
    let n_bytes = n_bytes.min(size_of::<T>());
    for at in (0..n_bytes).step_by(LINE_BYTES) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as in `to_read`: inside of `value`, and nothing is written. Every processor in 64-bit mode
        // knows PREFETCHW, if only as one that does nothing (SDM volume 2); compilers that may not assume so
        // make a prefetch for reading of the intrinsic.
        unsafe {
            std::arch::asm!(
                "prefetchw [{line}]",
                line = in(reg) std::ptr::from_ref(value).cast::<u8>().add(at),
                options(nostack, preserves_flags),
            );
        }
    }
}
