//! Packets: how they are drawn, and what the shadow reads in them.

use hsa_sys::{AqlPacket, hsa_signal_t};

/// A signal as a packet or call names it: none, one that is or was alive, or no signal at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(pub u8);

/// The emulated signals' first handle, and the distance of one to the next.
const BASE: u64 = 0x7f50_0000_0000;
const STEP: u64 = 64;
/// As many signals can be alive at a time.
pub(crate) const SIGNALS: usize = 12;

/// Handles that nobody gave out, or not as signals.
const GARBAGE: [u64; 16] = [
    1,
    STEP,
    0xdead_beef,
    BASE - STEP,
    BASE - 1,
    BASE + 1,
    BASE + STEP / 2,
    // The last that there can be, which mostly is not given out, and the one behind it.
    BASE + (SIGNALS as u64 - 1) * STEP,
    BASE + SIGNALS as u64 * STEP,
    // The first one's number with a bit above its 32.
    BASE + (STEP << 32),
    BASE << 1,
    // An agent's handle, and a queue's.
    0xa001,
    0x7f60_0000_1000,
    1 << 63,
    u64::MAX - STEP,
    u64::MAX,
];

impl Signal {
    /// The handle, of those that were given out so far.
    pub(crate) fn resolve(self, given: &[hsa_signal_t]) -> hsa_signal_t {
        match self.0 {
            0..=63 => hsa_signal_t::NULL,
            64..=239 if given.is_empty() => hsa_signal_t::NULL,
            choice @ 64..=239 => given[usize::from(choice - 64) % given.len()],
            choice @ 240..=255 => hsa_signal_t {
                handle: GARBAGE[usize::from(choice - 240)],
            },
        }
    }
}

/// A packet whose signals are still to be resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blueprint {
    /// The header.
    pub header: u16,
    /// Dependencies; what other packets have in their place is made of these bytes, too.
    pub dependencies: [Signal; 5],
    /// The completion signal.
    pub completion: Signal,
    /// How a kernel runs and ends.
    pub object: u8,
    /// For how long, or until which signal.
    pub argument: u8,
    /// What a kernel writes, where it does.
    pub writes: Signal,
    /// And which value.
    pub value: i8,
}

/// Kernels, barriers of both kinds, packets of a vendor, for agents, and an INVALID one.
const TYPES: [u8; 16] = [2, 2, 2, 2, 2, 2, 3, 3, 3, 5, 5, 5, 0, 0, 4, 1];
const LASTS: [u64; 8] = [0, 1, 100, 1_000, 5_000, 1 << 40, 1 << 63, u64::MAX];

impl Blueprint {
    /// The blueprint that these bytes stand for.
    #[must_use]
    pub fn of(bytes: &[u8; 13]) -> Self {
        let [
            kind,
            flags,
            d0,
            d1,
            d2,
            d3,
            d4,
            completion,
            object,
            argument,
            writes,
            value,
            raw,
        ] = *bytes;
        let kind = match kind {
            0..=223 => TYPES[usize::from(kind % 16)],
            224..=255 => raw,
        };
        Self {
            header: u16::from_le_bytes([kind, flags]),
            // Of many that must be met, some mostly are not.
            dependencies: [d0, d1, d2, d3, d4].map(|d| Signal(if d & 1 == 0 { d } else { 0 })),
            completion: Signal(completion),
            object,
            argument,
            // Most kernels write nothing.
            writes: Signal(if writes < 192 {
                0
            } else {
                writes.wrapping_mul(4) | 64
            }),
            value: value as i8,
        }
    }

    /// The packet. `id` is its kernel's number, if it is one.
    pub(crate) fn packet(&self, given: &[hsa_signal_t], id: u32) -> AqlPacket {
        let at = |signal: Signal| signal.resolve(given).handle;
        let [d0, d1, d2, d3, d4] = self.dependencies.map(at);
        let body = if self.header & 0xff == 2 {
            let (runs, argument) = match self.object & 0b1111 {
                0..=10 => (0, LASTS[usize::from(self.argument) % LASTS.len()]),
                11..=13 => (1, at(Signal(self.argument))),
                14 => (2, 0),
                // What no kernel says of itself.
                _ => (0x7e, u64::from(self.argument)),
            };
            let ends = match self.object >> 4 {
                0..=11 => 0,
                12..=13 => 1,
                14 => 2,
                _ => 0xfe,
            };
            let bad = u64::from(i32::from(self.value) as u32);
            let object = u64::from(id) << 32 | ends << 8 | runs;
            [0, 0, bad | bad << 32, object, argument, at(self.writes)]
        } else {
            [d0, d1, d2, d3, d4, u64::from(self.object)]
        };
        let [w1, w2, w3, w4, w5, w6] = body;
        let first = u64::from(self.header);
        AqlPacket::from_words([first, w1, w2, w3, w4, w5, w6, at(self.completion)])
    }
}

/// How long a kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    For(u64),
    Until(hsa_signal_t),
    Forever,
}

/// How it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Well,
    Badly(i64),
    Fault,
}

/// A packet as the shadow reads it: by its bytes, as the documentation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Invalid,
    Kernel {
        length: Length,
        end: End,
        writes: (hsa_signal_t, i64),
    },
    And([hsa_signal_t; 5]),
    Or([hsa_signal_t; 5]),
    /// A vendor's, an agent's, or of no known type.
    Foreign,
}

pub(crate) fn read(packet: &AqlPacket) -> Meaning {
    let words = packet.words();
    let signal = |word: usize| hsa_signal_t {
        handle: words[word],
    };
    let named = [1, 2, 3, 4, 5].map(signal);
    match words[0] & 0xff {
        1 => Meaning::Invalid,
        2 => Meaning::Kernel {
            length: match words[4] & 0xff {
                1 => Length::Until(signal(5)),
                2 => Length::Forever,
                _ => Length::For(words[5]),
            },
            end: match words[4] >> 8 & 0xff {
                1 => End::Badly(i64::from(words[3] as i32)),
                2 => End::Fault,
                _ => End::Well,
            },
            writes: (signal(6), i64::from((words[3] >> 32) as i32)),
        },
        3 => Meaning::And(named),
        5 => Meaning::Or(named),
        _ => Meaning::Foreign,
    }
}

pub(crate) fn barrier_bit(packet: &AqlPacket) -> bool {
    packet.words()[0] >> 8 & 1 == 1
}

pub(crate) fn completion(packet: &AqlPacket) -> hsa_signal_t {
    hsa_signal_t {
        handle: packet.words()[7],
    }
}
