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

/// More memory of its own than this is worth a look at what the allocator keeps.
const LARGE: u64 = 48 << 20;

/// Gives freed memory back if the process has grown large: under load it is never idle, and commits of hostile layers
/// leave many small free pieces behind.
pub fn give_back_if_large() {
    let pages = |text: &str, field: usize| -> Option<u64> {
        text.split_whitespace().nth(field)?.parse().ok()
    };
    let Ok(text) = std::fs::read_to_string("/proc/self/statm") else {
        return;
    };
    // Resident pages, and those of them that are files or shared.
    if let (Some(resident), Some(shared)) = (pages(&text, 1), pages(&text, 2))
        && resident.saturating_sub(shared) * rustix::param::page_size() as u64 > LARGE
    {
        give_back();
    }
}

/// Other allocators know by themselves.
#[cfg(not(target_env = "gnu"))]
pub fn economize() {}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn give_back() {}
