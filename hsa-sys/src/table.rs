//! The runtime's tables of functions, which it hands to a tool (`hsa_api_trace.h`).
//!
//! The root names a table for each part of the interface. A table is a 16-byte version and then
//! function pointers; its slots are counted here from the first pointer. The runtime calls every
//! function through its table, also when an application calls the exported one, so a tool that
//! [replaces](Tables::replace) a pointer sees all calls.
//!
//! # Which function is in which slot
//! The version's `minor_id` is the table's size in bytes. A table usually grows at its end, and
//! then the size says what is there. AMD's extension has also grown in its middle, without telling
//! by its version number: only the size tells, and a wrong guess calls a function of another kind.
//!
//! | ROCr | size of AMD's table (bytes) | order |
//! |---|---|---|
//! | 5.0 to 5.4 | 400 | [`Until5_5`](AmdExtOrder::Until5_5) |
//! | 5.5 | 424 | [`Until5_5`](AmdExtOrder::Until5_5) |
//! | 5.6, 5.7 | 456 | [`Since5_6`](AmdExtOrder::Since5_6) |
//! | 6.0 | 552 | [`Since5_6`](AmdExtOrder::Since5_6) |
//! | 6.1 | 560 | [`Since5_6`](AmdExtOrder::Since5_6) |
//! | 6.2 | 576 | [`Since5_6`](AmdExtOrder::Since5_6) |
//!
//! Any other size below 456 is an error. The core table has 1,016 bytes in all of them. The root's
//! major version is 1 in 5.x and 3 in 6.x, the others' 1 and 2.

use crate::functions::{Function, Place};
use std::ffi::c_void;
use std::fmt;
use std::mem::{offset_of, transmute_copy};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What each table begins with.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApiTableVersion {
    /// The table's version. 1 in 5.x; the root's is 3 in 6.x and the others' 2.
    pub major_id: u32,
    /// The table's size in bytes, with this version.
    pub minor_id: u32,
    /// Counts changes that the size does not tell.
    pub step_id: u32,
    /// Must be 0.
    pub reserved: u32,
}

/// The root of the tables: the part of it that every version has.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HsaApiTable {
    /// The root's own version.
    pub version: ApiTableVersion,
    /// The core table (`CoreApiTable`).
    pub core_: *mut ApiTableVersion,
    /// AMD's extension (`AmdExtTable`).
    pub amd_ext_: *mut ApiTableVersion,
    /// The finalizer's extension.
    pub finalizer_ext_: *mut ApiTableVersion,
    /// The images' extension.
    pub image_ext_: *mut ApiTableVersion,
}

/// In what order AMD's extension has its functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AmdExtOrder {
    /// ROCr 5.0 to 5.5.
    Until5_5,
    /// ROCr 5.6 and later: two functions more in front of what had been slot 16. (And others in
    /// front of what had been slot 47, of which nothing is declared here.)
    Since5_6,
}

impl AmdExtOrder {
    /// The order of a table of that size (bytes).
    ///
    /// # Errors
    /// For a size that no version has and that could be either order, and for one that is smaller
    /// than that of any version known.
    pub const fn of_size(size: u32) -> Result<Self, TableError> {
        match size {
            ..400 => Err(TableError::TooSmall {
                table: TableName::AmdExt,
                size,
                needed: 400,
            }),
            400 | 424 => Ok(Self::Until5_5),
            401..456 => Err(TableError::UnknownSize { size }),
            456.. => Ok(Self::Since5_6),
        }
    }
}

impl Place {
    /// The slot in tables whose AMD extension is in that order.
    #[must_use]
    pub const fn slot(self, order: AmdExtOrder) -> usize {
        match (self, order) {
            (Self::AmdExt(slot @ 16..), AmdExtOrder::Since5_6) => slot + 2,
            (Self::Core(slot) | Self::AmdExt(slot), _) => slot,
        }
    }

    /// The table that it is in.
    #[must_use]
    pub const fn table(self) -> TableName {
        match self {
            Self::Core(_) => TableName::Core,
            Self::AmdExt(_) => TableName::AmdExt,
        }
    }
}

/// One of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableName {
    /// The root.
    Root,
    /// The core table.
    Core,
    /// AMD's extension.
    AmdExt,
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Root => "the root table",
            Self::Core => "the core table",
            Self::AmdExt => "the table of AMD's extension",
        })
    }
}

/// Why a table can't be used, or has not got a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableError {
    /// The table is not there.
    Null(TableName),
    /// Its major version is not one that is known.
    Version {
        /// Which table.
        table: TableName,
        /// The version that it says.
        major: u32,
    },
    /// It ends before something that is needed.
    TooSmall {
        /// Which table.
        table: TableName,
        /// The size that it says (bytes).
        size: u32,
        /// The size that would be needed (bytes).
        needed: u32,
    },
    /// No known version of AMD's extension has this size, and it lies between two orders.
    UnknownSize {
        /// The size that it says (bytes).
        size: u32,
    },
    /// The function's slot is empty.
    Empty(&'static str),
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null(table) => write!(f, "{table} is missing"),
            Self::Version { table, major } => {
                write!(f, "{table} has the unknown major version {major}")
            }
            Self::TooSmall {
                table,
                size,
                needed,
            } => write!(f, "{table} has {size} bytes; {needed} are needed"),
            Self::UnknownSize { size } => write!(
                f,
                "the table of AMD's extension has {size} bytes, which no known version has: its \
                 order can't be told"
            ),
            Self::Empty(function) => write!(f, "the runtime's table has no {function}"),
        }
    }
}

impl std::error::Error for TableError {}

/// A table whose version was checked.
#[derive(Clone, Copy, Debug)]
struct Table {
    name: TableName,
    start: NonNull<ApiTableVersion>,
    size: u32,
}

impl Table {
    /// # Safety
    /// `start` is null, or points to a table that says its size truly and lives as long as the
    /// `Table`.
    unsafe fn new(
        name: TableName,
        start: *mut ApiTableVersion,
        majors: std::ops::RangeInclusive<u32>,
    ) -> Result<Self, TableError> {
        let start = NonNull::new(start).ok_or(TableError::Null(name))?;
        // SAFETY: every table begins with its version (the caller's promise).
        let version = unsafe { start.read() };
        if !majors.contains(&version.major_id) {
            return Err(TableError::Version {
                table: name,
                major: version.major_id,
            });
        }
        Ok(Self {
            name,
            start,
            size: version.minor_id,
        })
    }

    /// The slot, if the table reaches so far.
    fn slot(&self, slot: usize) -> Result<&AtomicPtr<c_void>, TableError> {
        let end = size_of::<ApiTableVersion>() + (slot + 1) * size_of::<*mut c_void>();
        if end > self.size as usize {
            return Err(TableError::TooSmall {
                table: self.name,
                size: self.size,
                needed: end as u32,
            });
        }
        // SAFETY: it ends within the table, which lives as long as `self`; it is a pointer, aligned
        // as one since the version is 16 bytes, and of its writers those in this process that use
        // this crate are atomic.
        unsafe {
            let first = self.start.as_ptr().add(1).cast::<*mut c_void>();
            Ok(AtomicPtr::from_ptr(first.add(slot)))
        }
    }
}

/// The runtime's tables, checked.
///
/// A cheap handle. Reading a function is safe; replacing one is not.
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    core: Table,
    amd_ext: Table,
    order: AmdExtOrder,
}

// SAFETY: the slots are accessed atomically, and nothing else of a table is read after it was made.
unsafe impl Send for Tables {}
// SAFETY: as above.
unsafe impl Sync for Tables {}

impl Tables {
    /// Checks the tables that the runtime gave to [`OnLoad`](crate::OnLoad).
    ///
    /// # Errors
    /// Where a table is missing, or its version or size is not known.
    ///
    /// # Safety
    /// `root` is null or points to a root table. It and what it points to say their sizes truly and
    /// live as long as this value and its copies are used. The runtime's do until it is unloaded.
    pub unsafe fn from_raw(root: *const HsaApiTable) -> Result<Self, TableError> {
        // SAFETY: the caller's promise; a root begins with its version, too.
        let checked = unsafe { Table::new(TableName::Root, root.cast_mut().cast(), 1..=3) }?;
        let needed = offset_of!(HsaApiTable, finalizer_ext_) as u32;
        if checked.size < needed {
            return Err(TableError::TooSmall {
                table: TableName::Root,
                size: checked.size,
                needed,
            });
        }
        // SAFETY: it is large enough for these two fields, which every version has.
        let (core, amd_ext) = unsafe { ((*root).core_, (*root).amd_ext_) };
        // SAFETY: the caller's promise.
        let core = unsafe { Table::new(TableName::Core, core, 1..=2) }?;
        // SAFETY: the caller's promise.
        let amd_ext = unsafe { Table::new(TableName::AmdExt, amd_ext, 1..=2) }?;
        let order = AmdExtOrder::of_size(amd_ext.size)?;
        Ok(Self {
            core,
            amd_ext,
            order,
        })
    }

    /// In what order AMD's extension is.
    #[must_use]
    pub fn order(&self) -> AmdExtOrder {
        self.order
    }

    fn slot(&self, place: Place) -> Result<&AtomicPtr<c_void>, TableError> {
        let table = match place.table() {
            TableName::AmdExt => &self.amd_ext,
            TableName::Core | TableName::Root => &self.core,
        };
        table.slot(place.slot(self.order))
    }

    /// The function that is in the tables now.
    ///
    /// # Errors
    /// Where the table ends before its slot, or the slot is empty.
    pub fn get<F: Function>(&self, _: F) -> Result<F::Pointer, TableError> {
        // Acquire: what the function's installer prepared for it is seen.
        let pointer = self.slot(F::PLACE)?.load(Ordering::Acquire);
        pointer_of::<F>(pointer)
    }

    /// Puts another function into the tables and returns the one that was there.
    ///
    /// The runtime reads slots without synchronization that a tool could rely on: do it in
    /// [`OnLoad`](crate::OnLoad), where nobody else can be calling.
    ///
    /// # Errors
    /// Where the table ends before its slot, or the slot is empty. Nothing is replaced then.
    ///
    /// # Safety
    /// `function` does what callers may expect of the function of this name, and can be called
    /// until it is replaced again, which is often for ever: a library that installs its own
    /// functions must not be unloaded.
    pub unsafe fn replace<F: Function>(
        &self,
        which: F,
        function: F::Pointer,
    ) -> Result<F::Pointer, TableError> {
        const { assert!(size_of::<F::Pointer>() == size_of::<*mut c_void>()) };
        self.get(which)?;
        // SAFETY: a function's pointer has the size of a data pointer (asserted above).
        let new = unsafe { transmute_copy::<F::Pointer, *mut c_void>(&function) };
        // AcqRel: publishes what the new function needs, and sees what the old one needs.
        let old = self.slot(F::PLACE)?.swap(new, Ordering::AcqRel);
        pointer_of::<F>(old)
    }
}

fn pointer_of<F: Function>(pointer: *mut c_void) -> Result<F::Pointer, TableError> {
    const { assert!(size_of::<F::Pointer>() == size_of::<*mut c_void>()) };
    if pointer.is_null() {
        return Err(TableError::Empty(F::NAME));
    }
    // SAFETY: `Function` is sealed: its `Pointer` is a function pointer, of the size asserted
    // above, and this one is not null. That it is of this type is what the slot says.
    Ok(unsafe { transmute_copy::<*mut c_void, F::Pointer>(&pointer) })
}

#[cfg(test)]
mod tests;
