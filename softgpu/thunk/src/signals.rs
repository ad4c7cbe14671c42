//! Signals in the runtime's memory (`amd_signal_t`), as packet processors use them.
//!
//! Nothing tells the thunk that a signal is destroyed or created: it is not a call of the driver's.
//! But a destroyed signal's kind is 0, and a new one's block is zeroed. So a packet processor numbers
//! each signal that a packet names, as soon as it sees the packet, in the signal's reserved words:
//! where the number is not the same any more before the packet has executed, the signal is another
//! one with the same handle.

use crate::memory::Mapped;
use hsa_sys::{amd_signal_t, hsa_signal_t};
use std::mem::{align_of, offset_of, size_of};
use std::sync::atomic::{
    AtomicI64, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// The high bits of a number that stands in a signal, so that nothing else is taken for one.
const NUMBERED: u64 = 0x50f7 << 48;

/// What a signal's kind can be while it lives: a user's, and two of doorbells.
const KINDS: [i64; 3] = [1, -1, -2];

/// A signal that is not there any more, or never was.
pub(crate) const NOBODY: u64 = 0;

/// What a packet's signals were when the packet was first seen: five dependencies and the completion
/// signal.
pub(crate) type Numbers = [u64; 6];

/// What is wrong with a signal that a packet names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stale {
    /// No signal can be at this address.
    NoSignal,
    /// It is destroyed.
    Destroyed,
    /// It was destroyed and created anew since the packet that names it was first seen.
    Recreated,
}

/// A signal whose memory is allocated, for as long as the map is held.
#[derive(Clone, Copy)]
pub(crate) struct Signal<'a> {
    base: *mut u8,
    _held: &'a Mapped<'a>,
}

macro_rules! field {
    ($(#[$doc:meta])* $name:ident: $atomic:ty, $field:ident) => {
        $(#[$doc])*
        pub(crate) fn $name(&self) -> &$atomic {
            const { assert!(offset_of!(amd_signal_t, $field) % align_of::<$atomic>() == 0) };
            // SAFETY: the whole structure lies in allocated memory that is not unmapped while the
            // map is held, and it is aligned; the other side uses atomic accesses, too.
            unsafe { &*self.base.add(offset_of!(amd_signal_t, $field)).cast() }
        }
    };
}

impl<'a> Signal<'a> {
    /// The signal of this handle, if its memory is allocated.
    pub(crate) fn at(signal: hsa_signal_t, held: &'a Mapped<'a>) -> Option<Self> {
        let address = usize::try_from(signal.handle).ok()?;
        let fits = address % align_of::<amd_signal_t>() == 0
            && held.contains(address, size_of::<amd_signal_t>());
        fits.then_some(Self {
            base: address as *mut u8,
            _held: held,
        })
    }

    field! {
        /// 0 once destroyed.
        kind: AtomicI64, kind
    }
    field! { value: AtomicI64, value }
    field! { mailbox: AtomicU64, event_mailbox_ptr }
    field! { event_id: AtomicU32, event_id }
    field! { start: AtomicU64, start_ts }
    field! { end: AtomicU64, end_ts }
    field! { number_word: AtomicU64, reserved3 }

    /// This signal's number; it gets one if it has none. [`NOBODY`] if it is destroyed, or what stands
    /// there is no signal: then nothing is written.
    fn number(&self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // It orders nothing: it is only ever compared.
        let found = self.number_word().load(Relaxed);
        if found & (0xffff << 48) == NUMBERED {
            return found;
        }
        if !KINDS.contains(&self.kind().load(Acquire)) || found != 0 {
            return NOBODY;
        }
        let number = NUMBERED | NEXT.fetch_add(1, Relaxed);
        self.number_word().store(number, Relaxed);
        number
    }

    /// The event to be raised once the value is written: its mailbox and its id.
    ///
    /// Read before that: afterwards the signal's owner may destroy it.
    pub(crate) fn event(&self) -> Option<(u64, u32)> {
        let mailbox = self.mailbox().load(Relaxed);
        (mailbox != 0).then(|| (mailbox, self.event_id().load(Relaxed)))
    }

    /// Subtracts 1, as the end of a packet; what was written before is seen by who reads it.
    pub(crate) fn subtract(&self) {
        self.value().fetch_sub(1, AcqRel);
    }

    /// Stores a value.
    pub(crate) fn store(&self, value: i64) {
        self.value().store(value, Release);
    }
}

/// The numbers of these signals, for a packet that is seen for the first time.
pub(crate) fn numbers(named: [hsa_signal_t; 6], held: &Mapped<'_>) -> Numbers {
    named.map(|signal| Signal::at(signal, held).map_or(NOBODY, |found| found.number()))
}

/// What is wrong with the first of a packet's signals that is not what it was, or never was one.
pub(crate) fn find_stale(
    named: impl IntoIterator<Item = (hsa_signal_t, u64)>,
    held: &Mapped<'_>,
) -> Option<(hsa_signal_t, Stale)> {
    named
        .into_iter()
        .filter(|(signal, _)| !signal.is_null())
        .find_map(|(signal, number)| {
            let stale = match Signal::at(signal, held) {
                // Its memory went with the runtime, which was shut down under the packet.
                None if number != NOBODY => return None,
                None => Stale::NoSignal,
                Some(found) if found.kind().load(Acquire) == 0 => Stale::Destroyed,
                Some(_) if number == NOBODY => Stale::NoSignal,
                Some(found) if found.number_word().load(Relaxed) != number => Stale::Recreated,
                Some(_) => return None,
            };
            Some((signal, stale))
        })
}

/// A signal's value, and what became of it since a packet that names it was first seen.
pub(crate) fn describe_signal(
    signal: hsa_signal_t,
    number: Option<u64>,
    held: &Mapped<'_>,
) -> String {
    let handle = signal.handle;
    let Some(found) = Signal::at(signal, held) else {
        return format!("{handle:#x}, which is no signal");
    };
    let value = found.value().load(Relaxed);
    let number = number.unwrap_or_else(|| found.number_word().load(Relaxed));
    let how = match find_stale([(signal, number)], held) {
        Some((_, Stale::Destroyed)) => ", which is destroyed",
        Some((_, Stale::Recreated)) => {
            ", which is another one: the one that the packet meant was destroyed"
        }
        Some((_, Stale::NoSignal)) | None => "",
    };
    format!("signal {handle:#x} = {value}{how}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;

    #[test]
    fn a_recreated_signal_is_told_from_the_first_one() {
        let memory = Memory::default();
        let start = memory.allocate(4_096, 0, 0, 0).unwrap();
        let held = memory.hold();
        let handle = hsa_signal_t {
            handle: start as u64,
        };
        let signal = Signal::at(handle, &held).unwrap();
        signal.kind().store(1, Release);
        let null = hsa_signal_t::NULL;
        let named = [handle, null, null, null, null, null];
        let old = numbers(named, &held);
        let stale = |numbers: Numbers| find_stale(named.into_iter().zip(numbers), &held);
        assert_eq!(stale(old), None);
        signal.kind().store(0, Release);
        assert_eq!(stale(old), Some((handle, Stale::Destroyed)));
        // A new signal: a zeroed block, then a kind.
        signal.number_word().store(0, Relaxed);
        signal.kind().store(1, Release);
        assert_eq!(stale(old), Some((handle, Stale::Recreated)));
        // A packet that names the new one does not hide that.
        let new = numbers(named, &held);
        assert_eq!(stale(old), Some((handle, Stale::Recreated)));
        assert_eq!(stale(new), None);
        let nobody = hsa_signal_t {
            handle: start as u64 + 8,
        };
        let found = find_stale([(nobody, NOBODY)], &held);
        assert_eq!(found, Some((nobody, Stale::NoSignal)));
        // What is no signal is not written to.
        let data = hsa_signal_t {
            handle: start as u64 + 64,
        };
        let signal = Signal::at(data, &held).unwrap();
        signal.kind().store(77, Release);
        assert_eq!(
            numbers([data, null, null, null, null, null], &held)[0],
            NOBODY
        );
        assert_eq!(signal.number_word().load(Relaxed), 0);
    }
}
