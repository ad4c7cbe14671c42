//! What an emulated kernel does, carried in its dispatch packet.
//!
//! There is no code to run, so the packet's fields that would name code and arguments say how the
//! kernel behaves: `kernel_object` its number and kinds, `kernarg_address` how long it runs or for
//! which signal, `reserved2` a signal that it writes at its end. A packet of zeroes in these fields
//! is a kernel that takes no time.

use hsa_sys::{AqlPacket, hsa_kernel_dispatch_packet_t, hsa_signal_t};

/// `reserved0` of a packet whose other fields say what its kernel does, so that the emulation below
/// AMD's runtime can tell it from a packet that names code. HSA wants 0 there and reads it nowhere.
pub const MAGIC: u16 = 0x50f7;

/// How long a kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// So many nanoseconds (at least: it ends at some step after that).
    For(u64),
    /// Until the signal's value is below 1: it spins for what another kernel writes.
    Until(hsa_signal_t),
    /// It never ends.
    Forever,
}

/// How a kernel ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// 1 is subtracted from its completion signal.
    Well,
    /// This negative value is stored in its completion signal; its queue goes on.
    Badly(i32),
    /// It faults: its queue stops, nothing of it completes any more, the queue's error callback
    /// is called.
    Fault,
}

/// A kernel's behaviour; [`packet`](Self::packet) makes the dispatch of it.
///
/// ```
/// use softgpu::{Ends, Kernel};
/// let kernel = Kernel::lasting(5_000).id(7).ends(Ends::Badly(-3));
/// assert_eq!(Kernel::of(&kernel.packet()), Some(kernel));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    id: u32,
    runs: Runs,
    ends: Ends,
    writes: Option<(hsa_signal_t, i32)>,
    completion: hsa_signal_t,
    barrier: bool,
}

impl Kernel {
    /// A kernel that runs like this and ends well, without barrier bit and completion signal.
    #[must_use]
    pub const fn new(runs: Runs) -> Self {
        Self {
            id: 0,
            runs,
            ends: Ends::Well,
            writes: None,
            completion: hsa_signal_t::NULL,
            barrier: false,
        }
    }

    /// One that runs for so many nanoseconds.
    #[must_use]
    pub const fn lasting(nanoseconds: u64) -> Self {
        Self::new(Runs::For(nanoseconds))
    }

    /// One that runs until the signal is below 1.
    #[must_use]
    pub const fn until(signal: hsa_signal_t) -> Self {
        Self::new(Runs::Until(signal))
    }

    /// One that never ends.
    #[must_use]
    pub const fn endless() -> Self {
        Self::new(Runs::Forever)
    }

    /// How many nanoseconds it runs, where that is said.
    #[must_use]
    pub const fn nanoseconds(&self) -> Option<u64> {
        match self.runs {
            Runs::For(nanoseconds) => Some(nanoseconds),
            Runs::Until(_) | Runs::Forever => None,
        }
    }

    /// A number to find it by in reports.
    #[must_use]
    pub const fn id(mut self, id: u32) -> Self {
        self.id = id;
        self
    }

    /// How it ends.
    #[must_use]
    pub const fn ends(mut self, ends: Ends) -> Self {
        self.ends = ends;
        self
    }

    /// It stores this value in a signal when it ends, before its completion signal is touched.
    #[must_use]
    pub const fn writes(mut self, signal: hsa_signal_t, value: i32) -> Self {
        self.writes = Some((signal, value));
        self
    }

    /// Its completion signal.
    #[must_use]
    pub const fn completion(mut self, signal: hsa_signal_t) -> Self {
        self.completion = signal;
        self
    }

    /// With the barrier bit.
    #[must_use]
    pub const fn barrier(mut self) -> Self {
        self.barrier = true;
        self
    }

    /// The dispatch packet.
    #[must_use]
    pub fn packet(&self) -> AqlPacket {
        let (runs, argument) = match self.runs {
            Runs::For(nanoseconds) => (0, nanoseconds),
            Runs::Until(signal) => (1, signal.handle),
            Runs::Forever => (2, 0),
        };
        let (ends, value) = match self.ends {
            Ends::Well => (0, 0),
            Ends::Badly(value) => (1, value),
            Ends::Fault => (2, 0),
        };
        let (signal, stored) = self.writes.unwrap_or((hsa_signal_t::NULL, 0));
        let packet = AqlPacket::from(hsa_kernel_dispatch_packet_t {
            private_segment_size: value as u32,
            group_segment_size: stored as u32,
            reserved0: MAGIC,
            kernel_object: u64::from(self.id) << 32 | ends << 8 | runs,
            kernarg_address: argument,
            reserved2: signal.handle,
            completion_signal: self.completion,
            ..Default::default()
        });
        if self.barrier {
            packet.with_barrier_bit()
        } else {
            packet
        }
    }

    /// Whether the packet says by [`MAGIC`] that its fields describe a kernel.
    #[must_use]
    pub fn is_described(packet: &AqlPacket) -> bool {
        packet
            .as_kernel_dispatch()
            .is_some_and(|fields| fields.reserved0 == MAGIC)
    }

    /// What the packet's kernel does; `None` if it is no kernel dispatch.
    #[must_use]
    pub fn of(packet: &AqlPacket) -> Option<Self> {
        let fields = packet.as_kernel_dispatch()?;
        let signal = hsa_signal_t {
            handle: fields.reserved2,
        };
        Some(Self {
            id: (fields.kernel_object >> 32) as u32,
            runs: match fields.kernel_object & 0xff {
                1 => Runs::Until(hsa_signal_t {
                    handle: fields.kernarg_address,
                }),
                2 => Runs::Forever,
                _ => Runs::For(fields.kernarg_address),
            },
            ends: match fields.kernel_object >> 8 & 0xff {
                1 => Ends::Badly(fields.private_segment_size as i32),
                2 => Ends::Fault,
                _ => Ends::Well,
            },
            writes: (!signal.is_null()).then_some((signal, fields.group_segment_size as i32)),
            completion: fields.completion_signal,
            barrier: packet.barrier_bit(),
        })
    }

    pub(crate) const fn parts(&self) -> (u32, Runs, Ends, Option<(hsa_signal_t, i32)>) {
        (self.id, self.runs, self.ends, self.writes)
    }
}

impl From<Kernel> for AqlPacket {
    fn from(kernel: Kernel) -> Self {
        kernel.packet()
    }
}
