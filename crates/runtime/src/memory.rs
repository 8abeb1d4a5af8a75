//! What the allocator is told, so that a daemon that lives long stays small.

/// For a process that serves: pieces of files go back to the system when they are freed, and threads
/// share what is kept. To be called before there are threads.
#[cfg(target_env = "gnu")]
pub fn economize() {
    const LARGE: i32 = 1 << 20;
    const ARENAS: i32 = 4;
    // SAFETY: both only set a number.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
    }
}

/// The allocator keeps what was freed between blocks still in use, unless it is told.
#[cfg(target_env = "gnu")]
pub(crate) fn give_back() {
    // SAFETY: takes and touches nothing of ours.
    unsafe { libc::malloc_trim(0) };
}

/// Gives back what this thread's stack has used at its deepest. Walks recurse, and a thread that serves many requests would
/// keep the stack of the deepest tree for as long as it lives.
#[cfg(target_env = "gnu")]
pub fn give_back_stack() {
    /// Left alone below this frame, for whatever is called next.
    const MARGIN: usize = 256 << 10;
    let (mut low, mut size) = (std::ptr::null_mut(), 0);
    let here = std::ptr::from_ref(&size).addr();
    // SAFETY: the attributes are filled in before they are read, and only pages far below this frame are given up: nothing
    // on a stack is alive there. Such a page is zero when it is next touched.
    unsafe {
        let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return;
        }
        let found = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        let page = rustix::param::page_size();
        let end = here.saturating_sub(MARGIN) / page * page;
        let start = low.addr().next_multiple_of(page);
        if found == 0 && low.addr() < here && start < end {
            libc::madvise(low.with_addr(start), end - start, libc::MADV_DONTNEED);
        }
    }
}

/// Bytes that are resident for nothing: freed, and kept by the allocator because something beside them is in use.
#[cfg(target_env = "gnu")]
pub(crate) fn wasted() -> u64 {
    // SAFETY: it only counts.
    let counted = unsafe { libc::mallinfo2() };
    own().saturating_sub((counted.uordblks + counted.hblkhd) as u64)
}

/// Bytes of memory that are this process's own: resident, and neither of a file nor shared.
#[cfg(target_env = "gnu")]
pub(crate) fn own() -> u64 {
    let Ok(text) = std::fs::read_to_string("/proc/self/statm") else {
        return 0;
    };
    let mut pages = text.split_whitespace().map(|field| field.parse::<u64>());
    match (pages.nth(1), pages.next()) {
        (Some(Ok(resident)), Some(Ok(shared))) => {
            resident.saturating_sub(shared) * rustix::param::page_size() as u64
        }
        _ => 0,
    }
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn wasted() -> u64 {
    0
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn own() -> u64 {
    0
}

/// Other allocators know by themselves.
#[cfg(not(target_env = "gnu"))]
pub fn economize() {}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn give_back() {}

#[cfg(not(target_env = "gnu"))]
pub fn give_back_stack() {}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    /// Uses some of the stack at each level.
    fn recurse(levels: usize) -> usize {
        let used = std::hint::black_box([1_u8; 4096]);
        match levels {
            0 => 0,
            _ => recurse(levels - 1) + usize::from(used[levels % 4096]),
        }
    }

    #[test]
    fn a_stack_that_was_deep_is_given_back_and_can_be_deep_again() {
        let deep = || {
            let before = own();
            assert_eq!(recurse(4_000), 4_000);
            let used = own();
            give_back_stack();
            (before, used, own())
        };
        let thread = std::thread::Builder::new().stack_size(64 << 20);
        let thread = thread.spawn(move || [deep(), deep()]);
        for (before, used, after) in thread.expect("a thread").join().expect("no panic") {
            assert!(used > before + (8 << 20), "{before} {used}");
            assert!(after < used - (8 << 20), "{used} {after}");
        }
    }
}
