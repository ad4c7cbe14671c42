//! Every function × every handle × {null, foreign, of another kind, stale}.

use crate::fake::Hsa;
use crate::table::{Arg, Call, FUNCTIONS, Function};
use crate::world::{Kind, World};
use hsa_serializer_capi::status::hsa_serializer_status_t as Status;
use hsa_serializer_capi::status::hsa_serializer_status_t::*;

/// A number that nobody has been given, of the kind of that handle.
fn foreign_like(live: u64) -> [u64; 4] {
    const NUMBER: u64 = (1 << 56) - 1;
    let kind = live & !NUMBER;
    [
        kind | NUMBER,
        kind | 1 << 40,
        kind | 1 << 32,
        kind | u64::from(u32::MAX),
    ]
}

/// Integers that are no handles at all.
const GARBAGE: [u64; 4] = [1, u64::MAX, 1 << 63, 0x00ff_0000_0000_0000];

pub(crate) fn expect(
    function: &Function,
    world: &World,
    call: Call<'_>,
    comes_to: Status,
    what: &str,
) {
    let before = world.seen();
    let (status, written) = call.call(function);
    let name = function.name;
    assert_eq!(status, comes_to, "{name}: {what}");
    assert!(written.is_empty(), "{name}: {what}: wrote {written:?}");
    assert_eq!(before, world.seen(), "{name}: {what}");
}

#[test]
fn every_handle_of_every_function_is_checked() {
    let (world, ended, hsa) = (World::new(), World::new(), Hsa::new());
    ended.end();
    for function in FUNCTIONS {
        for (at, (arg, _)) in function.args.iter().enumerate() {
            let (kind, may_be_null) = match arg {
                Arg::Handle(kind) => (*kind, false),
                Arg::HandleOrNull(kind) => (*kind, true),
                _ => continue,
            };
            let try_it = |handle: u64, comes_to, what: &str| {
                let call = Call::good(function, &world, &hsa).with(at, handle);
                expect(function, &world, call, comes_to, what);
            };
            if !may_be_null {
                try_it(0, HSA_SERIALIZER_NULL_HANDLE, "a null handle");
            }
            let foreign = HSA_SERIALIZER_FOREIGN_HANDLE;
            for handle in foreign_like(world.handle(kind)) {
                try_it(handle, foreign, "a handle that was never given");
            }
            for handle in GARBAGE {
                try_it(handle, foreign, "an integer that is no handle");
            }
            for other in Kind::ALL.into_iter().filter(|other| *other != kind) {
                let what = format!("a handle of {other:?}");
                try_it(world.handle(other), foreign, &what);
                try_it(
                    ended.handle(other),
                    foreign,
                    &format!("{what} that has ended"),
                );
            }
            let stale = HSA_SERIALIZER_STALE_HANDLE;
            if function.name == "hsa_serializer_queue_id" {
                // It stays its own.
                let call = Call::good(function, &world, &hsa).with(at, ended.handle(kind));
                assert_eq!(call.call(function), (HSA_SERIALIZER_SUCCESS, vec![1]));
            } else {
                try_it(ended.handle(kind), stale, "a stale handle");
            }
        }
    }
}
