//! Handles: what C holds of everything here, and how it is checked.
//!
//! ```text
//!  63      56 55                                                        0
//! ┌──────────┬───────────────────────────────────────────────────────────┐
//! │ kind     │ number                                                    │
//! └──────────┴───────────────────────────────────────────────────────────┘
//! ```
//! Numbers of a kind count up, and none is given twice. So whatever integer comes in, it is told apart
//! whether it was given out (else: foreign), for this kind (else: foreign), and is gone (stale).

use crate::status::{HSA_SERIALIZER_FOREIGN_HANDLE, HSA_SERIALIZER_NULL_HANDLE, Outcome};

/// What a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Serializer = 0x51,
    Queue,
    Domain,
    Agents,
    Request,
    Cut,
    StallWatch,
    BarrierSet,
    Barrier,
}

const NUMBER_BITS: u32 = 56;

#[inline(always)]
pub(crate) const fn of(kind: Kind, number: u64) -> u64 {
    (kind as u64) << NUMBER_BITS | number
}

/// The number, if the handle is one of that kind.
#[inline(always)]
pub(crate) fn number(handle: u64, kind: Kind) -> Outcome<u64> {
    let number = handle ^ of(kind, 0);
    if number >> NUMBER_BITS != 0 {
        return Err(not_of_that_kind(handle));
    }
    Ok(number)
}

#[cold]
fn not_of_that_kind(handle: u64) -> crate::status::hsa_serializer_status_t {
    if handle == 0 {
        HSA_SERIALIZER_NULL_HANDLE
    } else {
        HSA_SERIALIZER_FOREIGN_HANDLE
    }
}

/// A serializer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_t {
    /// A number that is never given to anything else; 0 is none.
    pub handle: u64,
}

/// The dispatching half of a queue, of a serializer or of a barrier set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_queue_t {
    /// A number that is never given to anything else; 0 is none.
    pub handle: u64,
}

/// A domain of reclamation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_domain_t {
    /// A number that is never given to anything else; 0 is none.
    pub handle: u64,
}

/// The agents of the process, with a serializer each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_agents_t {
    /// A number that is never given to anything else; 0 is none.
    pub handle: u64,
}

/// A request: kernels are serialized for as long as it has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_request_t {
    /// A number that is never given to anything else; 0 is none.
    pub handle: u64,
}

/// What was in flight at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_cut_t {
    /// A number that is never given to anything else; 0 is none.
    pub handle: u64,
}

/// What looks for stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_stall_watch_t {
    /// A number that is never given to anything else; 0 is none.
    pub handle: u64,
}

/// Barriers by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_barrier_set_t {
    /// A number that is never given to anything else; 0 is none.
    pub handle: u64,
}

/// A barrier of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_barrier_t {
    /// A number that is never given to anything else; 0 is none.
    pub handle: u64,
}

macro_rules! of_kind {
    ($($name:ident, $kind:ident;)*) => {$(
        impl $name {
            #[inline(always)]
            pub(crate) fn new(number: u64) -> Self {
                Self { handle: of(Kind::$kind, number) }
            }

            #[inline(always)]
            pub(crate) fn number(self) -> Outcome<u64> {
                number(self.handle, Kind::$kind)
            }
        }
    )*};
}

of_kind! {
    hsa_serializer_t, Serializer;
    hsa_serializer_queue_t, Queue;
    hsa_serializer_domain_t, Domain;
    hsa_serializer_agents_t, Agents;
    hsa_serializer_request_t, Request;
    hsa_serializer_cut_t, Cut;
    hsa_serializer_stall_watch_t, StallWatch;
    hsa_serializer_barrier_set_t, BarrierSet;
    hsa_serializer_barrier_t, Barrier;
}
