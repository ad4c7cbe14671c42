//! An allocator that counts, for each thread, what that thread asks for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    // Without destructors, so that they are there as long as their thread is.
    static MADE: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator, counting. A program says that it is its global one.
#[derive(Debug)]
pub struct Counting;

fn count(made: u64, bytes: i64) {
    MADE.set(MADE.get() + made);
    BYTES.set(BYTES.get() + bytes);
}

// SAFETY: memory comes from the system's allocator, which is asked for exactly what is asked for here.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(0, -(layout.size() as i64));
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(memory, layout) };
    }

    // The other two go through these by default, so that they are counted.
}

/// What a thread has allocated while something ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// How many times it asked for memory.
    pub times: u64,
    /// By how many bytes more it holds afterwards; what it freed for others counts for it.
    pub bytes: i64,
}

impl std::ops::AddAssign for Allocated {
    fn add_assign(&mut self, other: Self) {
        self.times += other.times;
        self.bytes += other.bytes;
    }
}

/// What this thread allocates while `f` runs, and what `f` returns.
///
/// # Panics
/// Where the program's allocator is another one: nothing would be counted.
pub fn during<T>(f: impl FnOnce() -> T) -> (Allocated, T) {
    let before = MADE.get();
    drop(std::hint::black_box(Box::new(0_u8)));
    assert!(MADE.get() > before, "the counting allocator is not in use");
    let (made, bytes) = (MADE.get(), BYTES.get());
    let value = f();
    let allocated = Allocated {
        times: MADE.get() - made,
        bytes: BYTES.get() - bytes,
    };
    (allocated, value)
}
