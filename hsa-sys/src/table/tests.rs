//! Tables of every known size, and of sizes that none has. Slot `n` holds the number `n + 1`, so
//! that what is read says where it was read from; nothing of it is called.

use super::*;
use crate::{Api, functions, hsa_agent_t, hsa_queue_error_callback_t};
use crate::{hsa_queue_create_fn, hsa_queue_t, hsa_queue_type32_t, hsa_status_t};
use std::ptr;

const CORE_SIZE: u32 = 1016;

/// A root with its two tables. Boxed cells, so that addresses stay where they are.
struct Fake {
    root: Box<HsaApiTable>,
    core: Box<[AtomicPtr<c_void>]>,
    amd_ext: Box<[AtomicPtr<c_void>]>,
}

fn numbered(major: u32, size: u32) -> Box<[AtomicPtr<c_void>]> {
    let slots = (size as usize).saturating_sub(16) / 8;
    let version = [
        u64::from(major) | u64::from(size) << 32,
        0, // step and reserved
    ];
    version
        .into_iter()
        .map(|word| word as usize)
        .chain(1..=slots)
        .map(|word| AtomicPtr::new(ptr::without_provenance_mut(word)))
        .collect()
}

impl Fake {
    fn new(amd_ext_size: u32) -> Self {
        Self::with([1, 1, 1], CORE_SIZE, amd_ext_size)
    }

    fn with([root, core, amd_ext]: [u32; 3], core_size: u32, amd_ext_size: u32) -> Self {
        let core = numbered(core, core_size);
        let amd_ext = numbered(amd_ext, amd_ext_size);
        let root = Box::new(HsaApiTable {
            version: ApiTableVersion {
                major_id: root,
                minor_id: 48,
                ..Default::default()
            },
            core_: core.as_ptr().cast_mut().cast(),
            amd_ext_: amd_ext.as_ptr().cast_mut().cast(),
            finalizer_ext_: ptr::null_mut(),
            image_ext_: ptr::null_mut(),
        });
        Self {
            root,
            core,
            amd_ext,
        }
    }

    fn tables(&self) -> Result<Tables, TableError> {
        // SAFETY: the tables live as long as `self`, which every test keeps to its end.
        unsafe { Tables::from_raw(&*self.root) }
    }
}

fn slot_of<F: Function>(tables: &Tables, function: F) -> Result<usize, TableError> {
    let pointer = tables.get(function)?;
    // SAFETY: a function pointer is read as the number that the fake table has in its slot.
    Ok(unsafe { transmute_copy::<F::Pointer, usize>(&pointer) } - 1)
}

#[test]
fn intercept_functions_are_where_each_version_has_them() {
    for (size, create) in [
        (400, 35),
        (424, 35),
        (456, 37),
        (552, 37),
        (560, 37),
        (576, 37),
        (4096, 37),
    ] {
        let fake = Fake::new(size);
        let tables = fake.tables().unwrap();
        let slots = (
            slot_of(&tables, functions::hsa_amd_queue_intercept_create),
            slot_of(&tables, functions::hsa_amd_queue_intercept_register),
        );
        assert_eq!(slots, (Ok(create), Ok(create + 1)), "at {size} bytes");
        // What is in front of the place where the table grew has not moved.
        assert_eq!(
            slot_of(&tables, functions::hsa_amd_memory_async_copy),
            Ok(15)
        );
        let moved = create - 35;
        assert_eq!(
            slot_of(&tables, functions::hsa_amd_agent_memory_pool_get_info),
            Ok(16 + moved)
        );
        assert_eq!(slot_of(&tables, functions::hsa_queue_create), Ok(7));
        assert_eq!(slot_of(&tables, functions::hsa_queue_destroy), Ok(9));
    }
}

#[test]
fn a_size_that_no_version_has_is_an_error() {
    for size in [401, 408, 416, 425, 432, 440, 448, 455] {
        assert_eq!(
            Fake::new(size).tables().unwrap_err(),
            TableError::UnknownSize { size }
        );
    }
    for size in [0, 16, 24, 392, 399] {
        assert_eq!(
            Fake::new(size).tables().unwrap_err(),
            TableError::TooSmall {
                table: TableName::AmdExt,
                size,
                needed: 400
            }
        );
    }
}

#[test]
fn a_function_behind_the_core_tables_end_is_an_error() {
    let end = |slot: u32| 16 + (slot + 1) * 8;
    let fake = Fake::with([1, 1, 1], end(7), 400);
    let tables = fake.tables().unwrap();
    assert_eq!(slot_of(&tables, functions::hsa_queue_create), Ok(7));
    assert_eq!(
        slot_of(&tables, functions::hsa_queue_destroy),
        Err(TableError::TooSmall {
            table: TableName::Core,
            size: end(7),
            needed: end(9)
        })
    );
    // One byte short of the slot's end is short.
    let fake = Fake::with([1, 1, 1], end(7) - 1, 400);
    let tables = fake.tables().unwrap();
    assert!(slot_of(&tables, functions::hsa_queue_create).is_err());
    assert!(Api::from_tables(&tables).is_err());
}

#[test]
fn versions_that_are_known_do_and_others_do_not() {
    for majors in [[1, 1, 1], [3, 2, 2]] {
        assert!(Fake::with(majors, CORE_SIZE, 560).tables().is_ok());
    }
    for (majors, table, major) in [
        ([0, 1, 1], TableName::Root, 0),
        ([4, 2, 2], TableName::Root, 4),
        ([3, 0, 2], TableName::Core, 0),
        ([3, 3, 2], TableName::Core, 3),
        ([3, 2, 0], TableName::AmdExt, 0),
        ([3, 2, 3], TableName::AmdExt, 3),
    ] {
        assert_eq!(
            Fake::with(majors, CORE_SIZE, 560).tables().unwrap_err(),
            TableError::Version { table, major }
        );
    }
}

#[test]
fn what_is_missing_is_named() {
    // SAFETY: null is allowed.
    let none = unsafe { Tables::from_raw(ptr::null()) };
    assert_eq!(none.unwrap_err(), TableError::Null(TableName::Root));

    let mut fake = Fake::new(400);
    fake.root.amd_ext_ = ptr::null_mut();
    assert_eq!(
        fake.tables().unwrap_err(),
        TableError::Null(TableName::AmdExt)
    );
    let mut fake = Fake::new(400);
    fake.root.core_ = ptr::null_mut();
    assert_eq!(
        fake.tables().unwrap_err(),
        TableError::Null(TableName::Core)
    );
    let mut fake = Fake::new(400);
    fake.root.version.minor_id = 24;
    assert_eq!(
        fake.tables().unwrap_err(),
        TableError::TooSmall {
            table: TableName::Root,
            size: 24,
            needed: 32
        }
    );

    let fake = Fake::new(400);
    let tables = fake.tables().unwrap();
    fake.core[2 + 7].store(ptr::null_mut(), Ordering::Relaxed);
    let error = TableError::Empty("hsa_queue_create");
    assert_eq!(
        tables.get(functions::hsa_queue_create).unwrap_err(),
        error.clone()
    );
    assert_eq!(Api::from_tables(&tables).unwrap_err(), error);
    // SAFETY: nothing calls through the fake table, and nothing is replaced.
    let replaced = unsafe { tables.replace(functions::hsa_queue_create, create) };
    assert_eq!(replaced.unwrap_err(), error);
    assert!(fake.core[2 + 7].load(Ordering::Relaxed).is_null());
}

unsafe extern "C" fn create(
    _: hsa_agent_t,
    _: u32,
    _: hsa_queue_type32_t,
    _: Option<hsa_queue_error_callback_t>,
    _: *mut c_void,
    _: u32,
    _: u32,
    _: *mut *mut hsa_queue_t,
) -> hsa_status_t {
    hsa_status_t::ERROR
}

#[test]
fn a_function_is_replaced_and_what_was_saved_stays() {
    let fake = Fake::new(560);
    let tables = fake.tables().unwrap();
    let saved = Api::from_tables(&tables).unwrap();
    assert!(saved.hsa_amd_queue_intercept_create.is_some());

    // SAFETY: nothing calls through the fake table.
    let old = unsafe { tables.replace(functions::hsa_queue_create, create) }.unwrap();
    assert_eq!(old as usize, 7 + 1);
    assert_eq!(saved.hsa_queue_create as usize, 7 + 1);
    let now: hsa_queue_create_fn = create;
    let table = Api::from_tables(&tables).unwrap();
    assert_eq!(table.hsa_queue_create as usize, now as usize);
    assert_eq!(
        fake.core[2 + 7].load(Ordering::Relaxed).addr(),
        now as usize
    );
    // Its neighbours are what they were.
    assert_eq!(fake.core[2 + 6].load(Ordering::Relaxed).addr(), 6 + 1);
    assert_eq!(fake.core[2 + 8].load(Ordering::Relaxed).addr(), 8 + 1);
    assert_eq!(fake.amd_ext[2 + 7].load(Ordering::Relaxed).addr(), 7 + 1);
}

#[test]
fn an_error_says_what_and_where() {
    let text = |e: TableError| e.to_string();
    assert_eq!(
        text(TableError::UnknownSize { size: 440 }),
        "the table of AMD's extension has 440 bytes, which no known version has: its order can't \
         be told"
    );
    assert_eq!(
        text(TableError::TooSmall {
            table: TableName::Core,
            size: 80,
            needed: 96
        }),
        "the core table has 80 bytes; 96 are needed"
    );
    assert_eq!(
        text(TableError::Version {
            table: TableName::Root,
            major: 9
        }),
        "the root table has the unknown major version 9"
    );
    assert_eq!(
        text(TableError::Null(TableName::AmdExt)),
        "the table of AMD's extension is missing"
    );
    assert_eq!(
        text(TableError::Empty("hsa_init")),
        "the runtime's table has no hsa_init"
    );
}
