//! Every function × every pointer that may not be null, every structure's size, every number; and that a good call
//! is a good one, or none of the bad ones would say anything.

use crate::fake::Hsa;
use crate::handles::expect;
use crate::table::{Arg, Call, FUNCTIONS, Fill, Function};
use crate::world::{Kind, World};
use hsa_serializer_capi::status::hsa_serializer_status_t as Status;
use hsa_serializer_capi::status::hsa_serializer_status_t::*;

/// Good but for what `bad` makes of it.
fn try_it(
    function: &Function,
    (world, hsa): (&World, &Hsa),
    comes_to: Status,
    what: &str,
    bad: impl for<'a> FnOnce(Call<'a>) -> Call<'a>,
) {
    let call = bad(Call::good(function, world, hsa));
    expect(function, world, call, comes_to, what);
}

#[test]
fn a_good_call_of_every_function_is_taken() {
    let hsa = Hsa::new();
    for function in FUNCTIONS {
        let world = World::new();
        let (status, written) = Call::good(function, &world, &hsa).call(function);
        let name = function.name;
        assert_eq!(status, function.comes_to, "{name}");
        for (at, (arg, _)) in function.args.iter().enumerate() {
            // Packets, too: somebody has made a cut.
            let is_output = matches!(arg, Arg::Out | Arg::OutOrNull);
            let writes = is_output && status == HSA_SERIALIZER_SUCCESS;
            assert_eq!(written.contains(&at), writes, "{name}: argument {at}");
        }
    }
}

#[test]
fn pointers_that_may_be_null_may_be() {
    let hsa = Hsa::new();
    for function in FUNCTIONS {
        for (at, (arg, _)) in function.args.iter().enumerate() {
            if matches!(
                arg,
                Arg::OutOrNull | Arg::InOrNull | Arg::FunctionOrNull | Arg::HandleOrNull(_)
            ) {
                let world = World::new();
                let call = Call::good(function, &world, &hsa).with(at, 0);
                let (status, _) = call.call(function);
                assert_eq!(
                    status, function.comes_to,
                    "{}: argument {at}",
                    function.name
                );
            }
        }
    }
}

#[test]
fn every_pointer_of_every_function_is_checked() {
    let (world, hsa) = (World::new(), Hsa::new());
    for function in FUNCTIONS {
        for (at, (arg, _)) in function.args.iter().enumerate() {
            if matches!(arg, Arg::Out | Arg::In | Arg::Function) {
                let what = format!("argument {at} is null");
                let null = HSA_SERIALIZER_NULL_POINTER;
                try_it(function, (&world, &hsa), null, &what, |call| {
                    call.with(at, 0)
                });
            }
        }
    }
}

#[test]
fn every_number_of_every_function_is_checked() {
    let (world, hsa) = (World::new(), Hsa::new());
    for function in FUNCTIONS {
        for (at, value, comes_to) in function.bad {
            let what = format!("argument {at} is {value}");
            try_it(function, (&world, &hsa), *comes_to, &what, |call| {
                call.with(*at, *value)
            });
        }
    }
}

/// Words of a structure, what each may not be, and what comes of it.
fn bad_words(fill: Fill, world: &World, ended: &World) -> Vec<(usize, u64, Status)> {
    let words = |words: &[u64]| words.len() as u64 * 8;
    let mut bad = Vec::new();
    let size = match fill {
        Fill::Nothing | Fill::Agents => return bad,
        Fill::Options => words(&[0; 4]),
        Fill::Hsa => words(&[0; 5]),
        Fill::Runtime => words(&[0; 10]),
        Fill::Statistics => words(&[0; 31]),
    };
    for wrong in [0, 1, 7, 8, size - 8, size - 1, size + 1, size + 8, u64::MAX] {
        bad.push((0, wrong, HSA_SERIALIZER_BAD_SIZE));
    }
    match fill {
        Fill::Options => {
            let [live, stale] = [world, ended].map(|w| w.handle(Kind::Domain));
            bad.push((1, stale, HSA_SERIALIZER_STALE_HANDLE));
            bad.push((1, live | 1 << 40, HSA_SERIALIZER_FOREIGN_HANDLE));
            bad.push((1, world.handle(Kind::Queue), HSA_SERIALIZER_FOREIGN_HANDLE));
            bad.push((1, 1, HSA_SERIALIZER_FOREIGN_HANDLE));
            bad.push((3, 2, HSA_SERIALIZER_BAD_VALUE));
            bad.push((3, u32::MAX.into(), HSA_SERIALIZER_BAD_VALUE));
        }
        Fill::Hsa => bad.push((1, 0, HSA_SERIALIZER_NULL_POINTER)),
        // The functions that have to be there.
        Fill::Runtime => bad.extend((2..7).map(|word| (word, 0, HSA_SERIALIZER_NULL_POINTER))),
        _ => {}
    }
    bad
}

#[test]
fn every_field_of_every_structure_is_checked() {
    let (world, ended, hsa) = (World::new(), World::new(), Hsa::new());
    ended.end();
    for function in FUNCTIONS {
        for (at, (_, fill)) in function.args.iter().enumerate() {
            for (word, value, comes_to) in bad_words(*fill, &world, &ended) {
                let what = format!("word {word} of argument {at} is {value:#x}");
                try_it(function, (&world, &hsa), comes_to, &what, |call| {
                    call.with_word(at, word, value)
                });
            }
        }
    }
}

/// Memory that is a table of no version.
static NO_TABLE: [u64; 16] = [0; 16];

#[test]
fn a_table_that_is_none_is_refused() {
    let (world, hsa) = (World::new(), Hsa::new());
    let table = (&raw const NO_TABLE).expose_provenance() as u64;
    let mut tried = 0;
    for function in FUNCTIONS {
        let Some(at) = function
            .args
            .iter()
            .position(|(_, fill)| *fill == Fill::Hsa)
        else {
            continue;
        };
        let bad = HSA_SERIALIZER_BAD_TABLE;
        try_it(function, (&world, &hsa), bad, "no table", |call| {
            call.with_word(at, 1, table)
        });
        tried += 1;
    }
    assert_eq!(tried, 3);
}
