//! No bytes make the reader panic, and what it accepts holds together.

use proptest::prelude::*;
use traces::{Options, Trace};

fn check(bytes: &[u8]) {
    // Printing is part of it: messages cut and quote the file's own text.
    match Options::new().max_bytes(1 << 20).parse("fuzz", bytes) {
        Ok(trace) => check_trace(&trace),
        Err(error) => assert!(error.to_string().starts_with("fuzz: ")),
    }
}

fn check_trace(trace: &Trace) {
    assert_eq!(trace.kernels.first().map(|kernel| kernel.start_ns), Some(0));
    assert!(trace.kernels.is_sorted_by_key(|kernel| kernel.start_ns));
    assert_eq!(trace.rows().count(), trace.kernels.len());
    for kernel in &trace.kernels {
        assert!(kernel.start_ns <= kernel.end_ns && kernel.line > 0);
        assert!(trace.origin_ns.checked_add(kernel.end_ns).is_some());
        assert_eq!(trace.queues[kernel.queue as usize].agent, kernel.agent);
    }
}

fn valid() -> impl Strategy<Value = Vec<u8>> {
    let csv = "Kind,Agent_Id,Queue_Id,Kernel_Name,Start_Timestamp,End_Timestamp\r\n\
               \"KERNEL_DISPATCH\",\"Agent 4\",1,\"a, \"\"b\"\"\",10,20\r\n\
               KERNEL_DISPATCH,Agent 4,2,c,5,18446744073709551615\r\nMEMORY_COPY,,,,,\r\n";
    let json = r#"{"traceEvents":[{"ph":"M"},
        {"ph":"X","cat":"kernel","name":"\u00e4\"","ts":1.5e3,"dur":"0.25","args":{"device":0,"stream":7}},
        {"ph":"X","cat":"gpu_op","name":"b","ts":18446744073709551.614,"dur":0.001,"pid":1,"tid":"x"},{}]}"#;
    let plain = prop_oneof![
        Just(csv.as_bytes().to_vec()),
        Just(json.as_bytes().to_vec())
    ];
    (plain, any::<bool>()).prop_map(|(bytes, gzip)| if gzip { pack(&bytes) } else { bytes })
}

fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = flate2::read::GzEncoder::new(bytes, flate2::Compression::fast());
    std::io::Read::read_to_end(&mut encoder, &mut out).unwrap();
    out
}

/// Replaces, inserts, deletes, or doubles a few bytes.
fn mutate(bytes: &mut Vec<u8>, edits: &[(u8, proptest::sample::Index, u8)]) {
    for (edit, at, byte) in edits {
        if bytes.is_empty() {
            return;
        }
        let at = at.index(bytes.len());
        match edit % 5 {
            0 => bytes[at] = *byte,
            1 => bytes.insert(at, *byte),
            2 => drop(bytes.remove(at)),
            3 => bytes.truncate(at),
            _ => bytes.extend_from_within(at..),
        }
    }
}

#[test]
fn the_seeds_are_valid() {
    proptest!(|(bytes in valid())| {
        prop_assert_eq!(traces::parse("seed", &bytes).unwrap().kernels.len(), 2);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes);
    }

    #[test]
    fn arbitrary_text(text in "[\\[{]?[\\[\\]{}:,\"a-z0-9.\\-\\\\ \n]{0,100}") {
        check(text.as_bytes());
    }

    #[test]
    fn mutated_files(
        mut bytes in valid(),
        edits in proptest::collection::vec(any::<(u8, proptest::sample::Index, u8)>(), 1..6),
    ) {
        mutate(&mut bytes, &edits);
        check(&bytes);
    }
}
