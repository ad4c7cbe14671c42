//! A queue of AQL packets in the runtime's memory, and its packet processor.
//!
//! The ring, the two indices and the doorbell are where the runtime put them. The doorbell is a
//! plain word: nothing wakes a processor, so it is asked in turns ([`crate::engine`]).

use crate::clock;
use crate::engine::Surroundings;
use crate::signals::{NOBODY, Numbers, Signal, describe_signal, find_stale, numbers};
use crate::witness::is_gate;
use hsa_sys::{AQL_PACKET_SIZE, AqlPacket, PacketType, amd_queue_t, hsa_queue_t, hsa_signal_t};
use softgpu::processor::{At, Blocked, Bus, Head, Outcome, Processor, signals};
use softgpu::{Kernel, Runs};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::mem::{offset_of, size_of};
use std::sync::atomic::{
    AtomicI64, AtomicU16, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Packets that are taken between two looks at the other queues.
const BATCH: usize = 64;

/// Packets behind the head that a description lists.
const BEHIND: u64 = 64;

/// A published packet above the doorbell is taken after so many nanoseconds: two producers may ring
/// out of order, and of two stores to a word between two looks only the second is seen.
const GRACE: u64 = 1_000_000;

/// Bits of the inactive signal, by which a queue tells of its error: a packet of no known type.
const BAD_PACKET: i64 = 32;
/// A kernel faulted (`HSA_STATUS_ERROR_EXCEPTION` is what the application's callback gets).
const EXCEPTION: i64 = 1 << 31;

/// `AMD_QUEUE_PROPERTIES_ENABLE_PROFILING`.
const PROFILING: u32 = 1 << 3;

/// AMD's packet that waits for a signal's value (`hsa_amd_barrier_value_packet_t`): a vendor packet of
/// format 2. `hipStreamWaitValue` is made of it.
#[derive(Clone, Copy, Debug)]
struct BarrierValue {
    signal: hsa_signal_t,
    value: i64,
    mask: i64,
    condition: u32,
}

impl BarrierValue {
    fn of(packet: &AqlPacket) -> Option<Self> {
        let [header, signal, value, mask, condition, ..] = packet.words();
        let format = header >> 16 & 0xff;
        let is_one = packet.packet_type() == Some(PacketType::VendorSpecific) && format == 2;
        is_one.then_some(Self {
            signal: hsa_signal_t { handle: signal },
            value: value as i64,
            mask: mask as i64,
            condition: condition as u32,
        })
    }

    fn is_met(self, around: &Surroundings<'_>) -> bool {
        if self.signal.is_null() {
            return true;
        }
        let Some(found) = Signal::at(self.signal, around.held) else {
            return false;
        };
        let masked = found.value().load(Acquire) & self.mask;
        match self.condition {
            0 => masked == self.value,
            1 => masked != self.value,
            2 => masked < self.value,
            _ => masked >= self.value,
        }
    }
}

/// Where a queue's parts are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) id: u64,
    pub(crate) node: u32,
    pub(crate) ring: usize,
    pub(crate) ring_bytes: usize,
    /// The `amd_queue_t`.
    pub(crate) queue: usize,
    /// Never freed.
    pub(crate) doorbell: &'static AtomicI64,
}

/// A queue, less its processor.
#[derive(Debug)]
struct Hardware {
    places: Places,
    stopped: Cell<bool>,
    /// The error that stopped it.
    error: Cell<i64>,
    /// Whether the last pass found a packet at the head, or a kernel running.
    busy: Cell<bool>,
    /// One more than the highest index that was rung for.
    rung: Cell<u64>,
    /// Packets below this index have had their signals numbered.
    seen: Cell<u64>,
    /// The packet above the doorbell that was last found at the head, and when first.
    unrung: Cell<(u64, u64)>,
    /// Whether a gate has passed since the last kernel.
    gate: Cell<bool>,
    /// By slot: what the signals of the packet there were when it was first seen.
    numbers: RefCell<Vec<Numbers>>,
    /// Packets of which a stale signal was reported.
    told: RefCell<BTreeSet<u64>>,
}

/// A queue and its processor.
#[derive(Debug)]
pub(crate) struct AqlQueue {
    hardware: Hardware,
    processor: Processor<Numbers>,
}

/// A queue with what it works on, for one pass.
struct View<'a> {
    hardware: &'a Hardware,
    around: &'a Surroundings<'a>,
}

impl Hardware {
    fn mapped(&self, around: &Surroundings<'_>) -> bool {
        let Places {
            ring,
            ring_bytes,
            queue,
            ..
        } = self.places;
        around.held.contains(ring, ring_bytes)
            && around.held.contains(queue, size_of::<amd_queue_t>())
    }

    /// A field of the `amd_queue_t`. Only while it is mapped, which is asked once a pass.
    fn field<T>(&self, offset: usize) -> &T {
        // SAFETY: the structure is allocated and stays so while the map is held, for the whole pass;
        // the offset is that of an aligned field of this size, which the other side accesses
        // atomically or does not write any more.
        unsafe { &*((self.places.queue + offset) as *const T) }
    }

    fn read_index(&self) -> &AtomicU64 {
        self.field(offset_of!(amd_queue_t, read_dispatch_id))
    }

    fn write_index(&self) -> u64 {
        self.field::<AtomicU64>(offset_of!(amd_queue_t, write_dispatch_id))
            .load(Acquire)
    }

    fn slot_number(&self, index: u64) -> usize {
        (index % (self.places.ring_bytes / AQL_PACKET_SIZE) as u64) as usize
    }

    fn slot(&self, index: u64) -> *const AtomicU64 {
        let offset = self.slot_number(index) * AQL_PACKET_SIZE;
        (self.places.ring + offset) as *const AtomicU64
    }

    fn packet(&self, index: u64) -> AqlPacket {
        let slot = self.slot(index);
        AqlPacket::from_words(std::array::from_fn(|word| {
            // SAFETY: within the mapped ring, aligned. The first word, which holds the header that
            // publishes the others, is read first (`from_fn` goes in order).
            let word_ref = unsafe { &*slot.add(word) };
            word_ref.load(if word == 0 { Acquire } else { Relaxed })
        }))
    }

    fn header(&self, index: u64) -> u16 {
        // SAFETY: within the mapped ring, aligned.
        unsafe { &*self.slot(index) }.load(Acquire) as u16
    }

    /// Numbers the signals of the packets that have come since the last pass.
    fn look_ahead(&self, around: &Surroundings<'_>) {
        // The highest that was ever seen: producers may ring out of order.
        let doorbell = self.places.doorbell.load(Acquire);
        let rung = u64::try_from(doorbell.saturating_add(1)).unwrap_or(0);
        self.rung.set(self.rung.get().max(rung));
        // A write index beyond the ring's end is garbage: no more than the ring can hold is looked at.
        let slots = (self.places.ring_bytes / AQL_PACKET_SIZE) as u64;
        let read = self.read_index().load(Relaxed);
        let last = self
            .rung
            .get()
            .min(self.write_index())
            .min(read.saturating_add(slots));
        let mut index = self.seen.get().max(read);
        while index < last && !is_invalid(self.header(index)) {
            self.see(index, around);
            index += 1;
        }
        self.seen.set(index);
    }

    fn see(&self, index: u64, around: &Surroundings<'_>) {
        let slot = self.slot_number(index);
        self.numbers.borrow_mut()[slot] = numbers(signals(&self.packet(index)), around.held);
    }

    /// Reports, once a packet, a signal of it that is not what it was.
    fn report(&self, at: &At<'_, Numbers>, skip: usize, around: &Surroundings<'_>) {
        let named = signals(at.packet).into_iter().zip(at.mark).skip(skip);
        if let Some((signal, how)) = find_stale(named, around.held) {
            if self.told.borrow_mut().insert(at.index) {
                around
                    .device
                    .witness
                    .stale(self.places.id, at.index, signal, how);
            }
        }
    }
}

fn is_invalid(header: u16) -> bool {
    header & 0xff == PacketType::Invalid as u16
}

impl Bus for View<'_> {
    type Mark = Numbers;

    fn now(&self) -> u64 {
        clock::now()
    }

    fn head(&self) -> Head {
        let hardware = self.hardware;
        if hardware.stopped.get() {
            return Head::Stopped;
        }
        let read = hardware.read_index().load(Relaxed);
        if read >= hardware.write_index() {
            return Head::Empty;
        }
        if is_invalid(hardware.header(read)) {
            return Head::Unpublished;
        }
        if read < hardware.rung.get() {
            return Head::Packet(read);
        }
        let now = clock::now();
        let (index, since) = hardware.unrung.get();
        if index != read {
            hardware.unrung.set((read, now));
            return Head::Unpublished;
        }
        if now - since < GRACE {
            return Head::Unpublished;
        }
        Head::Packet(read)
    }

    fn packet(&self, index: u64) -> (AqlPacket, Numbers) {
        // One that nobody rang for was not looked at ahead.
        if index >= self.hardware.seen.get() {
            self.hardware.see(index, self.around);
            self.hardware.seen.set(index + 1);
        }
        let slot = self.hardware.slot_number(index);
        (
            self.hardware.packet(index),
            self.hardware.numbers.borrow()[slot],
        )
    }

    fn consume(&self) {
        let read = self.hardware.read_index();
        let index = read.load(Relaxed);
        // SAFETY: the header is the first half-word of a slot of the mapped ring.
        let header = unsafe { &*self.hardware.slot(index).cast::<AtomicU16>() };
        header.store(PacketType::Invalid as u16, Release);
        // Whoever reserves the slot by this index sees it INVALID.
        read.store(index + 1, Release);
        self.around
            .device
            .witness
            .count(|counts| counts.packets += 1);
    }

    fn kernel(&self, packet: &AqlPacket) -> Option<Kernel> {
        if Kernel::is_described(packet) {
            return Kernel::of(packet);
        }
        packet.as_kernel_dispatch()?;
        Some(Kernel::new(Runs::For(self.around.device.kernel_ns())))
    }

    fn vendor_waits(&self, packet: &AqlPacket) -> Option<hsa_signal_t> {
        let value = BarrierValue::of(packet)?;
        (!value.is_met(self.around)).then_some(value.signal)
    }

    fn peek(&self, signal: hsa_signal_t) -> i64 {
        // Nobody will ever write what is no signal: it is reported, and waited for in vain.
        Signal::at(signal, self.around.held).map_or(1, |found| found.value().load(Acquire))
    }

    fn store(&self, signal: hsa_signal_t, value: i64) {
        if let Some(found) = Signal::at(signal, self.around.held) {
            let event = found.event();
            found.store(value);
            self.around.raise(event);
        }
    }

    fn complete(&self, signal: hsa_signal_t, started: u64) {
        let Some(found) = Signal::at(signal, self.around.held) else {
            return;
        };
        let event = found.event();
        let properties: &AtomicU32 = self
            .hardware
            .field(offset_of!(amd_queue_t, queue_properties));
        if properties.load(Relaxed) & PROFILING != 0 {
            found.start().store(clock::gpu_ticks(started), Relaxed);
            found.end().store(clock::gpu_ticks(clock::now()), Relaxed);
        }
        // Publishes the times. The last touch: its owner may destroy the signal now.
        found.subtract();
        self.around.raise(event);
    }

    fn looked_at(&self, at: At<'_, Numbers>) {
        self.hardware.report(&at, 0, self.around);
    }

    fn passed(&self, at: At<'_, Numbers>) {
        if is_gate(at.packet) {
            self.hardware.gate.set(true);
        }
        self.hardware.told.borrow_mut().remove(&at.index);
    }

    fn started(&self, at: At<'_, Numbers>, _id: u32, _now: u64) {
        let Places { node, id, .. } = self.hardware.places;
        let gated = self.hardware.gate.take();
        self.around
            .device
            .witness
            .started(node, id, at.index, gated);
    }

    fn finished(&self, at: At<'_, Numbers>) {
        // Its completion signal, which comes behind the five dependencies.
        self.hardware.report(&at, 5, self.around);
        self.hardware.told.borrow_mut().remove(&at.index);
        let id = self.hardware.places.id;
        self.around.device.witness.finished(id, at.index, false);
    }

    fn lost(&self, index: u64) {
        let id = self.hardware.places.id;
        self.around.device.witness.finished(id, index, true);
    }
}

impl AqlQueue {
    pub(crate) fn new(places: Places, most_running: usize) -> Self {
        Self {
            hardware: Hardware {
                places,
                stopped: Cell::new(false),
                error: Cell::new(0),
                busy: Cell::new(false),
                rung: Cell::new(0),
                seen: Cell::new(0),
                unrung: Cell::new((u64::MAX, 0)),
                gate: Cell::new(false),
                numbers: RefCell::new(vec![[NOBODY; 6]; places.ring_bytes / AQL_PACKET_SIZE]),
                told: RefCell::default(),
            },
            processor: Processor::new(most_running),
        }
    }

    pub(crate) fn places(&self) -> Places {
        self.hardware.places
    }

    /// Ends and launches what can be; whether there was anything.
    pub(crate) fn pass(&mut self, around: &Surroundings<'_>) -> bool {
        if self.hardware.stopped.get() {
            return false;
        }
        if !self.hardware.mapped(around) {
            // The runtime was shut down under a live queue.
            self.stop(around);
            return true;
        }
        self.hardware.look_ahead(around);
        let mut went = false;
        for _ in 0..BATCH {
            went |= self.end_kernels(around);
            let view = View {
                hardware: &self.hardware,
                around,
            };
            let Head::Packet(index) = view.head() else {
                break;
            };
            if PacketType::from_header(self.hardware.header(index)).is_none() {
                self.fail(BAD_PACKET, around);
                return true;
            }
            if self.processor.blocked(&view).is_some() {
                break;
            }
            self.processor.launch(&view, index);
            went = true;
        }
        let read = self.hardware.read_index().load(Relaxed);
        let waits = read < self.hardware.write_index();
        let runs = !self.processor.running().is_empty();
        self.hardware.busy.set(waits || runs);
        went
    }

    fn end_kernels(&mut self, around: &Surroundings<'_>) -> bool {
        let now = clock::now();
        let mut went = false;
        let view = View {
            hardware: &self.hardware,
            around,
        };
        while let Some(place) = self.processor.due(&view, now) {
            went = true;
            if self.processor.end(&view, place) == Outcome::Fault {
                self.fail(EXCEPTION, around);
                break;
            }
        }
        went
    }

    /// Whether it has something that is not over.
    pub(crate) fn is_busy(&self) -> bool {
        self.hardware.busy.get()
    }

    /// The queue stops for an error, and its inactive signal says which.
    fn fail(&mut self, error: i64, around: &Surroundings<'_>) {
        self.stop(around);
        self.hardware.error.set(error);
        let signal: &AtomicU64 = self
            .hardware
            .field(offset_of!(amd_queue_t, queue_inactive_signal));
        let handle = hsa_signal_t {
            handle: signal.load(Relaxed),
        };
        if let Some(found) = Signal::at(handle, around.held) {
            let event = found.event();
            found.value().fetch_or(error, Release);
            around.raise(event);
        }
    }

    /// Nothing of it executes any more.
    pub(crate) fn stop(&mut self, around: &Surroundings<'_>) {
        self.hardware.stopped.set(true);
        self.hardware.busy.set(false);
        let view = View {
            hardware: &self.hardware,
            around,
        };
        self.processor.abandon(&view);
    }

    /// When the next kernel may end, be that over already.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.processor.next_deadline(0)
    }

    /// What it does and what it waits for, as text.
    pub(crate) fn describe(&self, around: &Surroundings<'_>, text: &mut String) {
        let hardware = &self.hardware;
        let Places { id, node, ring, .. } = hardware.places;
        let _ = write!(text, "queue {id} of node {node} (ring {ring:#x}");
        if !hardware.mapped(around) {
            let _ = writeln!(text, "): its memory is gone");
            return;
        }
        let theirs: &AtomicU64 =
            hardware.field(offset_of!(amd_queue_t, hsa_queue) + offset_of!(hsa_queue_t, id));
        let _ = write!(text, ", the runtime's id {}): ", theirs.load(Relaxed));
        let (read, write) = (hardware.read_index().load(Relaxed), hardware.write_index());
        let rung = hardware.rung.get();
        let _ = writeln!(text, "read {read}, written {write}, rung {rung}");
        if hardware.stopped.get() {
            let why = match hardware.error.get() {
                0 => "by the runtime",
                BAD_PACKET => "by a packet of no known type",
                _ => "by a kernel's fault",
            };
            let _ = writeln!(text, "  stopped {why}");
            return;
        }
        for kernel in self.processor.running() {
            let _ = write!(text, "  packet {} runs ", kernel.packet);
            let _ = match kernel.runs {
                Runs::For(nanoseconds) => writeln!(text, "for {nanoseconds} ns"),
                Runs::Until(signal) => {
                    writeln!(text, "until {}", describe_signal(signal, None, around.held))
                }
                Runs::Forever => writeln!(text, "for ever"),
            };
        }
        let view = View { hardware, around };
        let blocked = self.processor.blocked(&view);
        if matches!(blocked, Some(Blocked::Empty | Blocked::Stopped)) {
            return;
        }
        let _ = write!(text, "  packet {read} ");
        let _ = match blocked {
            None | Some(Blocked::Empty | Blocked::Stopped) => writeln!(text, "could be launched"),
            Some(Blocked::Unpublished) => {
                writeln!(text, "was reserved, and is not published or not rung for")
            }
            Some(Blocked::Earlier(n)) => {
                writeln!(
                    text,
                    "has the barrier bit and waits for {n} earlier kernels"
                )
            }
            Some(Blocked::Full(n)) => writeln!(text, "waits for one of {n} kernels to end"),
            Some(Blocked::Signals(PacketType::VendorSpecific, named)) => {
                let named = named.iter();
                let described = named.map(|signal| describe_signal(*signal, None, around.held));
                let described: Vec<_> = described.collect();
                writeln!(text, "waits for a value of {}", described.join(", "))
            }
            Some(Blocked::Signals(kind, _)) => {
                let (packet, numbers) = view.packet(read);
                let all = if kind == PacketType::BarrierAnd {
                    "all"
                } else {
                    "one"
                };
                let _ = writeln!(text, "waits for {all} of");
                let named = signals(&packet).into_iter().zip(numbers).take(5);
                for (signal, number) in named.filter(|(signal, _)| !signal.is_null()) {
                    let described = describe_signal(signal, Some(number), around.held);
                    let _ = writeln!(text, "    {described}");
                }
                Ok(())
            }
        };
        let last = write.min(read.saturating_add(BEHIND));
        for index in read + 1..last {
            self.describe_behind(index, around, text);
        }
        if last < write {
            let _ = writeln!(text, "  and {} packets behind them", write - last);
        }
    }

    /// A packet that stands behind the head: whom else its signals will hold up, and what somebody
    /// elsewhere may be waiting for it to complete.
    fn describe_behind(&self, index: u64, around: &Surroundings<'_>, text: &mut String) {
        let packet = self.hardware.packet(index);
        let _ = match packet.packet_type() {
            Some(kind) => write!(text, "    {index}: {kind:?}"),
            None => write!(text, "    {index}: unknown"),
        };
        let named = signals(&packet);
        for signal in named[..5].iter().filter(|signal| !signal.is_null()) {
            let described = describe_signal(*signal, None, around.held);
            let _ = write!(text, ", waits for {described}");
        }
        if !named[5].is_null() {
            let _ = write!(text, ", completes {:#x}", named[5].handle);
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::settings::Settings;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    /// A queue whose indices are garbage: one pass over it.
    fn pass_over_garbage() -> bool {
        const SLOTS: usize = 64;
        static DOORBELL: AtomicI64 = AtomicI64::new(1 << 62);
        let device = Device::new(Settings::default());
        let ring_bytes = SLOTS * AQL_PACKET_SIZE;
        let allocate = |size| device.memory.allocate(size as u64, 1, 0, 0).unwrap();
        let places = Places {
            id: 1,
            node: 1,
            ring: allocate(ring_bytes),
            ring_bytes,
            queue: allocate(size_of::<amd_queue_t>()),
            doorbell: &DOORBELL,
        };
        let mut queue = AqlQueue::new(places, 1);
        let hardware = &queue.hardware;
        let write: &AtomicU64 = hardware.field(offset_of!(amd_queue_t, write_dispatch_id));
        write.store(1 << 62, Release);
        for index in 0..SLOTS as u64 {
            // SAFETY: within the ring that was allocated above, aligned.
            let header = unsafe { &*hardware.slot(index) };
            header.store(PacketType::BarrierAnd as u64, Release);
        }
        let held = device.memory.hold();
        queue.pass(&Surroundings {
            device: &device,
            held: &held,
            late: &RefCell::default(),
        })
    }

    #[test]
    fn no_more_than_a_ring_is_looked_at_ahead() {
        let (tell, told) = mpsc::channel();
        thread::spawn(move || tell.send(pass_over_garbage()));
        assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(true));
    }
}
