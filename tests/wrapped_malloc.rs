//! An allocator of the host's that asks for the mode within every allocation and deallocation, those of
//! the library itself among them: profilers of memory do such things.

use hsa_serializer::doc_runtime::Host;
use hsa_serializer::{
    BarrierSet, Domain, MAX_PACKETS, Mode, Remaining, Serializer, ShutdownError, StallPolicy,
};
use hsa_sys::AqlPacket;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

static ASKED: OnceLock<Serializer<Host>> = OnceLock::new();
static CALLS: AtomicU64 = AtomicU64::new(0);
static ENABLED: AtomicU64 = AtomicU64::new(0);

/// An allocation within asking would ask again, without end.
const DEEPEST: u32 = 1;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

struct Asks;

fn ask() {
    let Some(serializer) = ASKED.get() else {
        return;
    };
    // Without a destructor, so that it is there as long as its thread is.
    DEPTH.with(|depth| {
        depth.set(depth.get() + 1);
        if depth.get() > DEEPEST {
            std::process::abort();
        }
        let enabled = serializer.mode() == Mode::Enabled;
        ENABLED.fetch_add(u64::from(enabled), SeqCst);
        CALLS.fetch_add(1, SeqCst);
        depth.set(depth.get() - 1);
    });
}

// SAFETY: memory comes from the system's allocator, which is asked for exactly what is asked for here.
unsafe impl GlobalAlloc for Asks {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ask();
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        ask();
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(memory, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Asks = Asks;

/// Ends the process where the body is not through in time: an allocation that hangs hangs whoever would
/// say so in any other way.
fn bounded(body: impl FnOnce()) {
    static DONE: AtomicBool = AtomicBool::new(false);
    thread::spawn(|| {
        for _ in 0..600 {
            thread::sleep(Duration::from_millis(100));
            if DONE.load(SeqCst) {
                return;
            }
        }
        std::process::abort();
    });
    body();
    DONE.store(true, SeqCst);
}

const ROUNDS: u64 = 300;

/// Everything of the library's that allocates.
fn everything(s: &Serializer<Host>) {
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let mut watch = s.watch_stalls(Duration::ZERO, StallPolicy::Report);
    for n in 0..ROUNDS {
        let mut queue = s.add_queue().unwrap();
        let first = queue.dispatch(&mut packets).unwrap();
        s.enable().unwrap();
        queue.dispatch(&mut packets).unwrap().ticket.abandon();
        let stalls = watch.check_stalls(Duration::from_secs(n));
        drop((stalls, s.cut().unwrap().in_flight()));
        s.disable().unwrap();
        if first.packets == 0 && !first.serialized {
            s.complete(first.ticket).unwrap();
        } else {
            first.ticket.abandon();
        }
        let marker = queue.gap(&mut packets).unwrap();
        marker.ticket.abandon();
        s.queue_destroyed(queue.id()).unwrap();
        let _ = s.ready(queue.id());
        drop(queue);
        s.collect();
        drop(format!("{s:?} {:?}", s.statistics()));
    }
}

#[test]
fn s78_the_mode_can_be_asked_within_every_allocation() {
    bounded(|| {
        let s = ASKED.get_or_init(|| {
            let builder = Serializer::<Host>::builder().domain(Domain::new());
            builder.build(Host::default())
        });
        // Each on a thread that also ends, which frees what the library keeps for it.
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| everything(s));
            }
        });
        let before = CALLS.load(SeqCst);
        assert!(before > 10_000, "{before} calls");
        assert!(ENABLED.load(SeqCst) > 0);
        let builder = Serializer::<Host>::builder().domain(Domain::new());
        let set = BarrierSet::with(builder, Host::default());
        drop(set.arm(|_| {}).unwrap());
        drop(set);
        // The end, too.
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        let mut queue = s.add_queue().unwrap();
        let last = queue.dispatch(&mut packets).unwrap();
        s.begin_shutdown();
        match s.finish_shutdown(Duration::from_millis(5)) {
            Err(ShutdownError::TimedOut(Remaining { queues, .. })) => {
                assert_eq!(queues, [(queue.id(), 1)]);
            }
            outcome => panic!("{outcome:?}"),
        }
        s.complete(last.ticket).unwrap();
        let _ = s.try_finish_shutdown();
        let _ = s.ready(queue.id());
        assert_eq!(s.finish_shutdown(Duration::from_secs(20)), Ok(()));
    });
}
