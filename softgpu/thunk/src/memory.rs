//! What was allocated through the thunk, so that nothing else is ever touched.
//!
//! A runtime that is shut down with live queues frees the signals and rings that their packets name
//! before it closes the driver, and an application may give a packet any number for a signal. So
//! the packet processors hold the map for reading while they work, and look an address up before
//! they use it; whoever frees memory takes the map for writing.

use parking_lot::{RwLock, RwLockReadGuard};
use std::collections::BTreeMap;

/// A page.
pub(crate) const PAGE: usize = 4_096;

/// One allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) start: usize,
    pub(crate) size: usize,
    pub(crate) node: u32,
    pub(crate) flags: u32,
    pub(crate) user_data: usize,
}

/// All allocations, by their first address.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    regions: RwLock<BTreeMap<usize, Region>>,
}

/// The map, held: what it contains stays allocated.
#[derive(Debug)]
pub(crate) struct Mapped<'a>(RwLockReadGuard<'a, BTreeMap<usize, Region>>);

impl Mapped<'_> {
    /// The region that contains this address.
    pub(crate) fn find(&self, address: usize) -> Option<Region> {
        let (_, region) = self.0.range(..=address).next_back()?;
        (address - region.start < region.size).then_some(*region)
    }

    /// Whether `size` bytes from an address on are allocated, in one piece.
    pub(crate) fn contains(&self, address: usize, size: usize) -> bool {
        self.find(address)
            .is_some_and(|region| size <= region.size - (address - region.start))
    }
}

fn round_up(size: u64) -> Option<usize> {
    let size = usize::try_from(size).ok()?.max(1);
    size.checked_next_multiple_of(PAGE)
}

impl Memory {
    /// Zeroed pages; at this address, if one is wanted. `None` if there are none.
    ///
    /// They are reserved only, so that gigabytes of scratch memory cost nothing.
    pub(crate) fn allocate(&self, size: u64, node: u32, flags: u32, at: usize) -> Option<usize> {
        let size = round_up(size)?;
        let mut regions = self.regions.write();
        let fixed = if at == 0 {
            0
        } else {
            libc::MAP_FIXED_NOREPLACE
        };
        // SAFETY: new anonymous pages; with MAP_FIXED_NOREPLACE none that exist are replaced.
        let address = unsafe {
            libc::mmap(
                at as *mut libc::c_void,
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return None;
        }
        let start = address as usize;
        let region = Region {
            start,
            size,
            node,
            flags,
            user_data: 0,
        };
        regions.insert(start, region);
        Some(start)
    }

    /// Gives pages back; whether they were allocated, from this address on.
    pub(crate) fn free(&self, address: usize) -> bool {
        let mut regions = self.regions.write();
        let Some(region) = regions.remove(&address) else {
            return false;
        };
        // SAFETY: these pages were mapped by `allocate` and are unmapped once, since their entry is
        // gone; nobody of ours uses them, since that takes the map for reading.
        unsafe { libc::munmap(region.start as *mut libc::c_void, region.size) };
        true
    }

    /// Remembers a word of the runtime's with the region that contains this address.
    pub(crate) fn set_user_data(&self, address: usize, user_data: usize) -> bool {
        let mut regions = self.regions.write();
        let Some((_, region)) = regions.range_mut(..=address).next_back() else {
            return false;
        };
        let inside = address - region.start < region.size;
        if inside {
            region.user_data = user_data;
        }
        inside
    }

    /// Holds the map.
    pub(crate) fn hold(&self) -> Mapped<'_> {
        Mapped(self.regions.read())
    }

    /// Allocations, and their bytes.
    pub(crate) fn totals(&self) -> (usize, usize) {
        let regions = self.regions.read();
        (regions.len(), regions.values().map(|r| r.size).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_allocated_is_contained() {
        let memory = Memory::default();
        let start = memory.allocate(5_000, 1, 0, 0).unwrap();
        assert_eq!(start % PAGE, 0);
        let held = memory.hold();
        assert!(held.contains(start, 8_192) && held.contains(start + 8_191, 1));
        assert!(!held.contains(start + 8_185, 8) && !held.contains(start + 8_192, 1));
        assert!(!held.contains(start.wrapping_sub(1), 1) && !held.contains(usize::MAX, 8));
        assert_eq!(held.find(start + 100).map(|region| region.node), Some(1));
        drop(held);
        assert!(memory.set_user_data(start + 1, 7));
        assert!(memory.free(start) && !memory.free(start));
        assert!(!memory.hold().contains(start, 1));
        assert_eq!(memory.totals(), (0, 0));
    }

    #[test]
    fn no_size_is_too_strange() {
        let memory = Memory::default();
        assert_eq!(memory.allocate(u64::MAX, 0, 0, 0), None);
        assert_eq!(memory.allocate(1 << 60, 0, 0, 0), None);
        let huge = memory.allocate(4 << 30, 0, 0, 0).unwrap();
        assert!(memory.free(huge));
    }
}
