//! Bytes of a `perf_event_attr`, as the kernel and recordings hold them.

use perf_event_open_sys::bindings::perf_event_attr;

/// The bytes of `attr`, as the kernel gets them.
pub(crate) fn as_bytes(attr: &perf_event_attr) -> &[u8] {
    // SAFETY: the structure has no padding (the kernel's ABI test holds it to that, and every
    // union in it has members of one size) and all of it is initialised; the slice borrows it.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(attr).cast::<u8>(), size_of_val(attr)) }
}

/// The other way; `None` for another number of bytes.
pub(crate) fn from_bytes(bytes: &[u8]) -> Option<perf_event_attr> {
    if bytes.len() != size_of::<perf_event_attr>() {
        return None;
    }
    // SAFETY: there are as many bytes as the structure has, which is made of integers only: all bytes are one.
    Some(unsafe { bytes.as_ptr().cast::<perf_event_attr>().read_unaligned() })
}
