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

/// Bytes that are resident for nothing: freed, and kept by the allocator because something beside them is in use.
#[cfg(target_env = "gnu")]
pub(crate) fn wasted() -> u64 {
    own().saturating_sub(allocated())
}

/// Bytes that the program has asked for and not freed. What grows here with work that is over is a leak.
#[cfg(target_env = "gnu")]
pub fn allocated() -> u64 {
    // SAFETY: it only counts.
    let counted = unsafe { libc::mallinfo2() };
    (counted.uordblks + counted.hblkhd) as u64
}

/// Bytes of memory that are this process's own: resident, and neither of a file nor shared.
#[cfg(target_env = "gnu")]
pub fn own() -> u64 {
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

/// Not known of other allocators.
#[cfg(not(target_env = "gnu"))]
pub fn allocated() -> u64 {
    0
}

/// Not known of other allocators.
#[cfg(not(target_env = "gnu"))]
pub fn own() -> u64 {
    0
}

/// Other allocators know by themselves.
#[cfg(not(target_env = "gnu"))]
pub fn economize() {}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn give_back() {}
