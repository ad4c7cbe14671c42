//! Everything that this crate declares, against AMD's headers.
//!
//! A C++ program is generated from the crate's own lists, compiled against the installed headers,
//! and run: it prints every constant, size, offset and slot as the headers have it, and whether each
//! function's signature is the one declared here.
//!
//! The headers are those of `HSA_INCLUDE_DIR` (the directory that holds `hsa.h`), or the installed
//! ones. Where they or a compiler are missing, the test says so and passes, except in CI.

mod declared;
mod probe;

use declared::Declared;
use hsa_sys::functions;
use hsa_sys::{AmdExtOrder, ApiTableVersion, HsaApiTable, TableError, Tables};
use probe::{Headers, Values, compare};
use std::ffi::c_void;
use std::ptr;

/// What the headers must say, if they are of a version with these sizes.
fn expected(declared: &Declared, reported: &Values) -> Values {
    let size = u32::try_from(reported["table AmdExtTable.size"]).unwrap();
    let order = AmdExtOrder::of_size(size).unwrap();
    let mut values = declared.values();
    values.retain(|key, _| {
        let later = probe::LATER.iter().any(|name| key.ends_with(name));
        reported.contains_key(key) || !later
    });
    for (function, (table, name)) in functions::ALL.iter().zip(declared.slots()) {
        let slot = function.place.slot(order);
        values.insert(format!("slot {table}.{name}"), slot as i128);
        values.insert(format!("signature {name}"), 1);
    }
    for name in probe::NAMED_CALLBACKS {
        values.insert(format!("signature {name}"), 1);
    }
    values
}

/// The probe's answer, or `None` where there is nothing to probe with.
fn probe(declared: &Declared, name: &str) -> Option<Values> {
    match Headers::find().and_then(|headers| probe::run(&headers, declared, name)) {
        Ok(values) => Some(values),
        Err(reason) => {
            assert!(std::env::var_os("CI").is_none(), "{reason}");
            eprintln!("SKIPPED: {reason}");
            None
        }
    }
}

#[test]
fn everything_is_as_the_headers_have_it() {
    let declared = Declared::all();
    let Some(reported) = probe(&declared, "everything") else {
        return;
    };
    let expected = expected(&declared, &reported);
    let differences = compare(&expected, &reported);
    assert!(
        differences.is_empty(),
        "{} of {} differ from the headers:\n{}",
        differences.len(),
        expected.len(),
        differences.join("\n")
    );
}

/// The versions and sizes that these headers' runtime would hand to a tool are ones that we take.
#[test]
fn the_headers_tables_are_accepted() {
    let Some(reported) = probe(&Declared::all(), "tables") else {
        return;
    };
    let table = |name: &str| {
        let value = |what: &str| u32::try_from(reported[&format!("table {name}.{what}")]).unwrap();
        // Room for every slot; only the version is read.
        let mut words = vec![ptr::null_mut::<c_void>(); value("size") as usize / 8 + 1];
        let version = ApiTableVersion {
            major_id: value("major"),
            minor_id: value("size"),
            ..Default::default()
        };
        // SAFETY: a version has the size of two pointers, and not a larger alignment.
        unsafe { words.as_mut_ptr().cast::<ApiTableVersion>().write(version) };
        words
    };
    let mut core = table("CoreApiTable");
    let mut amd_ext = table("AmdExtTable");
    let root = HsaApiTable {
        version: ApiTableVersion {
            major_id: u32::try_from(reported["table HsaApiTable.major"]).unwrap(),
            minor_id: u32::try_from(reported["table HsaApiTable.size"]).unwrap(),
            ..Default::default()
        },
        core_: core.as_mut_ptr().cast(),
        amd_ext_: amd_ext.as_mut_ptr().cast(),
        finalizer_ext_: ptr::null_mut(),
        image_ext_: ptr::null_mut(),
    };
    // SAFETY: the three live until the end of this test and are as large as they say.
    let tables = unsafe { Tables::from_raw(&root) }.unwrap();
    // Every slot that we know is inside the tables: an empty one is another error.
    assert_eq!(
        tables
            .get(functions::hsa_amd_runtime_queue_create_register)
            .unwrap_err(),
        TableError::Empty("hsa_amd_runtime_queue_create_register")
    );
    assert_eq!(
        tables
            .get(functions::hsa_executable_iterate_agent_symbols)
            .unwrap_err(),
        TableError::Empty("hsa_executable_iterate_agent_symbols")
    );
}

/// The probe can fail: a wrong value of each kind is found, and named.
#[test]
fn a_wrong_value_is_reported() {
    let mut declared = Declared::all();
    // A wrong signature is one in the C++ program itself.
    let wrong = "hsa_queue_destroy";
    declared.override_parameters(wrong, &["u32"]);
    let Some(reported) = probe(&declared, "wrong") else {
        return;
    };
    let mut expected = expected(&declared, &reported);
    let spoilt = [
        "constant HSA_STATUS_ERROR_INVALID_SIGNAL",
        "constant HSA_AMD_SIGNAL_AMD_GPU_ONLY",
        "constant AMD_SIGNAL_KIND_DOORBELL",
        "size amd_queue_t",
        "size hsa_agent_info_t",
        "align amd_signal_t",
        "offset amd_queue_t.read_dispatch_id",
        "field hsa_queue_t.size",
        "slot CoreApiTable.hsa_queue_create",
        "slot AmdExtTable.hsa_amd_queue_intercept_create",
    ];
    for key in spoilt {
        *expected
            .get_mut(key)
            .unwrap_or_else(|| panic!("{key} is not compared")) += 1;
    }
    let differences = compare(&expected, &reported);
    for key in spoilt {
        let count = differences.iter().filter(|d| d.contains(key)).count();
        assert_eq!(count, 1, "{key} in {differences:#?}");
    }
    let signature = format!("signature {wrong}");
    assert!(differences.iter().any(|d| d.contains(&signature)));
    assert_eq!(differences.len(), spoilt.len() + 1, "{differences:#?}");
}

#[test]
fn a_value_that_was_not_reported_is_a_difference() {
    let values = |pairs: &[(&str, i128)]| -> Values {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect()
    };
    let here = values(&[("a", 1), ("b", 2), ("c", 3)]);
    assert_eq!(
        compare(&here, &values(&[("a", 1), ("b", 5), ("z", 0)])),
        [
            "b: 2 here, 5 in the headers",
            "c: 3 here, nothing in the headers"
        ]
    );
}

/// What is declared in the sources is in the lists that the probe is made from.
#[test]
fn nothing_that_is_declared_escapes_the_probe() {
    let declared = Declared::all();
    let mut missing = Vec::new();
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in std::fs::read_dir(sources).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text.lines() {
            let Some(name) = declared_name(line.trim_start()) else {
                continue;
            };
            if !declared.knows(name) {
                missing.push(format!("{name} of {}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "not in the lists: {missing:#?}");
}

/// The name that a line of source declares, where it is one of the header's.
fn declared_name(line: &str) -> Option<&str> {
    let name = ["pub struct ", "pub const ", "value "]
        .iter()
        .find_map(|start| line.strip_prefix(start))?
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()?;
    let of_header = ["hsa_", "amd_", "HSA_", "AMD_", "Hsa", "ApiTable"];
    of_header
        .iter()
        .any(|start| name.starts_with(start))
        .then_some(name)
}
