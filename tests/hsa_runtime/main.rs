//! `HsaRuntime` over a fake HSA of C functions: which signals it makes, what it does where one is
//! refused, and handlers that are called late, again, and after everything is gone.
#![cfg(feature = "hsa")]

mod fake;

use fake::{AGENT, Handler, Hsa, Made};
use hsa_serializer::hsa::hsa_sys::{HSA_DEVICE_TYPE_CPU, hsa_device_type_t};
use hsa_serializer::hsa::{HsaRuntime, HsaRuntimeError};
use hsa_serializer::{
    AddQueueError, AqlPacket, Builder, Domain, DrainError, MAX_PACKETS, Queue, Report, Runtime,
    Serializer, ShutdownError, SignalError, hsa_signal_t, hsa_signal_value_t, hsa_status_t,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, Ordering, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

/// Counts the bytes that are allocated.
struct Counting;

static ALLOCATED: AtomicIsize = AtomicIsize::new(0);

// SAFETY: it is the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn runtime(hsa: &Hsa) -> Result<HsaRuntime, HsaRuntimeError> {
    // SAFETY: the fake's functions can be called at any time, and it knows the agent.
    unsafe { HsaRuntime::new(hsa.api(), AGENT) }
}

/// With a reclamation domain of its own: what a test defers runs in that test.
fn serializer(hsa: &Hsa) -> Serializer<HsaRuntime> {
    let builder = Builder::default().domain(Domain::new());
    runtime(hsa).unwrap().serializer(builder)
}

fn made(hsa: &Hsa) -> Vec<Made> {
    hsa.with(|hsa| hsa.made.clone())
}

/// A serialized dispatch whose packets the test executes as far as the `ready` packet.
fn get_ready(hsa: &Hsa, queue: &mut Queue<HsaRuntime>, ready: hsa_signal_t) -> Serialized {
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let dispatch = queue.dispatch(&mut packets).unwrap();
    assert!(dispatch.serialized);
    let injected = &packets[..dispatch.packets];
    let [.., ready_packet, block_packet] = injected else {
        panic!("{injected:?}");
    };
    assert_eq!(ready_packet.completion_signal(), ready);
    hsa.decrement(ready);
    Serialized {
        ticket: dispatch.ticket,
        block: block_packet.completion_signal(),
    }
}

struct Serialized {
    ticket: hsa_serializer::Ticket,
    block: hsa_signal_t,
}

#[test]
fn signals_that_only_gpus_wait_for_take_no_event() {
    let hsa = Hsa::new();
    let serializer = serializer(&hsa);
    let queue = serializer.add_queue().unwrap();
    // escape, ready, block
    let of_a_queue = [Made::ForAll, Made::GpuOnly];
    assert_eq!(made(&hsa), [&[Made::GpuOnly], &of_a_queue[..]].concat());
    serializer.add_queue().unwrap();
    assert_eq!(made(&hsa)[3..], of_a_queue, "one escape signal for all");
    serializer.enable().unwrap();
    assert!(made(&hsa)[5..].iter().all(|how| *how == Made::GpuOnly));
    assert!(made(&hsa).len() > 5);

    let handler = hsa.handler(0);
    assert_eq!(hsa.value(handler.signal), 0);
    assert_eq!(handler.arg as u64, queue.id().to_raw());
}

#[test]
fn where_a_kind_of_signal_is_refused_another_does() {
    let refusal = hsa_status_t::ERROR_INVALID_ARGUMENT;
    let hsa = Hsa::new();
    let serializer = serializer(&hsa);
    hsa.with(|hsa| hsa.refused.insert(Made::GpuOnly, refusal));
    serializer.add_queue().unwrap();
    assert_eq!(made(&hsa), [Made::ForAgent, Made::ForAll, Made::ForAgent]);

    hsa.with(|hsa| hsa.refused.insert(Made::ForAgent, refusal));
    serializer.add_queue().unwrap();
    assert_eq!(made(&hsa)[3..], [Made::ForAll, Made::ForAll]);

    let exhausted = hsa_status_t::ERROR_OUT_OF_RESOURCES;
    hsa.with(|hsa| hsa.refused.insert(Made::ForAll, exhausted));
    let error = serializer.add_queue().unwrap_err();
    assert_eq!(error, AddQueueError::Ready(SignalError::Status(exhausted)));
    let text = error.to_string();
    assert!(text.contains("HSA_STATUS_ERROR_OUT_OF_RESOURCES"), "{text}");
    // The last refusal is the one that is told.
    let error = serializer.enable().unwrap_err().to_string();
    assert!(
        error.contains("HSA_STATUS_ERROR_OUT_OF_RESOURCES"),
        "{error}"
    );
}

#[test]
fn a_kernel_is_granted_by_the_handler_and_gives_the_token_back() {
    let hsa = Hsa::new();
    let serializer = serializer(&hsa);
    serializer.enable().unwrap();
    let mut first = serializer.add_queue().unwrap();
    let mut second = serializer.add_queue().unwrap();
    let (h1, h2) = (hsa.handler(0), hsa.handler(1));

    let a = get_ready(&hsa, &mut first, h1.signal);
    let b = get_ready(&hsa, &mut second, h2.signal);
    assert!(h1.call());
    assert_eq!(hsa.value(a.block), 0);
    assert!(h2.call());
    assert_eq!(hsa.value(b.block), 1, "one at a time");
    // Again, although nothing has happened: no harm.
    assert!(h1.call() && h2.call());
    assert_eq!((hsa.value(a.block), hsa.value(b.block)), (0, 1));

    serializer.complete(a.ticket).unwrap();
    assert_eq!((hsa.value(a.block), hsa.value(b.block)), (1, 0));
    assert_eq!((hsa.value(h1.signal), hsa.value(h2.signal)), (0, 1));
    serializer.complete(b.ticket).unwrap();
    assert_eq!(serializer.statistics().misuse, 0);
}

/// The runtime's thread is known before it has called any handler.
#[test]
fn s42_the_runtimes_thread_says_so_when_a_serializer_is_made() {
    let hsa = Hsa::new();
    let serializer = serializer(&hsa);
    std::thread::scope(|scope| {
        let refused = scope.spawn(|| {
            assert_eq!(serializer.drain(Duration::ZERO), Ok(()));
            hsa.call_functions();
            serializer.drain(Duration::ZERO)
        });
        let refused = refused.join().unwrap();
        assert_eq!(refused, Err(DrainError::OnHandlerThread));
    });
    assert_eq!(serializer.drain(Duration::ZERO), Ok(()), "this one is not");
}

/// SCENARIOS 42: what waits is refused on the runtime's thread, outside of our own handler, too.
#[test]
fn s42_who_has_called_a_handler_is_the_runtimes_thread() {
    let hsa = Hsa::new();
    let serializer = serializer(&hsa);
    let queue = serializer.add_queue().unwrap();
    let (id, handler) = (queue.id(), hsa.handler(0));
    let at_once = Duration::ZERO;
    std::thread::scope(|scope| {
        let refused = scope.spawn(|| {
            assert_eq!(serializer.drain(at_once), Ok(()), "nobody knows it yet");
            assert!(handler.call());
            let drained = serializer.drain(at_once);
            (drained, serializer.finish_shutdown(at_once))
        });
        let (drained, finished) = refused.join().unwrap();
        assert_eq!(drained, Err(DrainError::OnHandlerThread));
        assert_eq!(finished, Err(ShutdownError::OnHandlerThread));
    });
    // The first phase was done, and here it can be finished: but for the handler's last call.
    let Err(ShutdownError::TimedOut(remaining)) = serializer.finish_shutdown(at_once) else {
        panic!("the handler has not said Drop");
    };
    assert_eq!(remaining.handlers, 1, "{remaining}");
    std::thread::scope(|scope| scope.spawn(|| assert!(!handler.call())).join().unwrap());
    serializer.finish_shutdown(LONG).unwrap();
    assert!(hsa.with(|hsa| hsa.signals.is_empty()));
    assert_eq!(serializer.queue_destroyed(id), Ok(()), "it was given up");
}

#[test]
fn the_kill_switch_opens_what_is_queued_by_one_signal_for_the_gpu() {
    let hsa = Hsa::new();
    let serializer = serializer(&hsa);
    serializer.enable().unwrap();
    let mut queue = serializer.add_queue().unwrap();
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let dispatch = queue.dispatch(&mut packets).unwrap();
    let escapes = packets[..dispatch.packets].iter().map(|packet| {
        let [_, escape, ..] = packet.dependencies().expect("they wait");
        escape
    });
    let escapes: Vec<_> = escapes.collect();
    assert!(escapes.iter().all(|escape| *escape == escapes[0]));
    let made = hsa.with(|hsa| hsa.signals[&escapes[0].handle]);
    assert_eq!(made, (1, Made::GpuOnly));
    serializer.release_all();
    assert_eq!(hsa.value(escapes[0]), 0);
    assert!(queue.dispatch(&mut packets).is_err());
    serializer.complete(dispatch.ticket).unwrap();
    assert_eq!(hsa.value(escapes[0]), 0, "it outlives the packets");
}

#[test]
fn late_calls_go_and_touch_nothing() {
    let hsa = Hsa::new();
    let serializer = serializer(&hsa);
    let queue = serializer.add_queue().unwrap();
    let late = hsa.handler(0);
    let id = queue.id();

    // After the removal: it goes, and the signals with it.
    serializer.queue_destroyed(id).unwrap();
    drop(queue);
    assert!(!late.call());
    serializer.collect();
    assert_eq!(hsa.with(|hsa| hsa.signals.len()), 1, "the escape signal");
    // Its entry stayed, as in some versions, and its signal's block is another's by now.
    assert!(!late.call());

    let other = serializer.add_queue().unwrap();
    let current = hsa.handler(1);
    assert_eq!(current.signal, late.signal, "the handle came back");
    let before = hsa.with(|hsa| hsa.signals.clone());
    assert!(!late.call() && !late.call());
    assert_eq!(hsa.with(|hsa| hsa.signals.clone()), before);
    assert!(current.call());

    // After the serializer.
    drop((other, serializer));
    assert!(hsa.with(|hsa| hsa.signals.is_empty()));
    assert!(!late.call() && !current.call());

    // And of nobody.
    for arg in [0, 1, usize::MAX] {
        assert!(!late.call_with(arg), "{arg:#x}");
    }
}

#[test]
fn a_handler_finds_its_own_serializer_among_several() {
    let hsa = Hsa::new();
    let serializers: Vec<_> = (0..3).map(|_| serializer(&hsa)).collect();
    for s in &serializers {
        s.enable().unwrap();
    }
    let mut queues: Vec<_> = serializers.iter().map(|s| s.add_queue().unwrap()).collect();
    let handlers: Vec<Handler> = (0..3).map(|i| hsa.handler(i)).collect();
    let mut flights = Vec::new();
    for (queue, handler) in queues.iter_mut().zip(&handlers) {
        flights.push(get_ready(&hsa, queue, handler.signal));
    }
    // The middle one's handler grants in the middle one, and there alone.
    assert!(handlers[1].call());
    let blocks: Vec<_> = flights.iter().map(|f| hsa.value(f.block)).collect();
    assert_eq!(blocks, [1, 0, 1]);
    for flight in flights {
        flight.ticket.abandon();
    }

    // One goes; the others are still found.
    let mut serializers = serializers.into_iter();
    drop((queues.remove(1), serializers.nth(1)));
    assert!(!handlers[1].call());
    assert!(handlers[2].call());
}

#[test]
fn an_agent_has_to_be_a_gpu_and_errors_are_named() {
    let hsa = Hsa::new();
    hsa.with(|hsa| hsa.device = Ok(HSA_DEVICE_TYPE_CPU));
    let error = runtime(&hsa).unwrap_err();
    assert_eq!(error, HsaRuntimeError::NotAGpu(HSA_DEVICE_TYPE_CPU));
    assert_eq!(
        error.to_string(),
        "the agent is not a GPU but HSA_DEVICE_TYPE_CPU"
    );
    hsa.with(|hsa| hsa.device = Ok(hsa_device_type_t(7)));
    assert!(runtime(&hsa).is_err());

    for (status, text) in [
        (
            hsa_status_t::ERROR_NOT_INITIALIZED,
            "HSA_STATUS_ERROR_NOT_INITIALIZED",
        ),
        // One that the crate does not know, and the runtime does.
        (
            hsa_status_t(0x2001),
            "hsa_status_t(0x2001): the coffee is cold",
        ),
        // One that nobody knows.
        (hsa_status_t(0x2002), "hsa_status_t(0x2002)"),
    ] {
        hsa.with(|hsa| hsa.device = Err(status));
        let error = runtime(&hsa).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("asking what the agent is: {text}")
        );
    }
}

#[test]
fn reports_reach_the_sink_and_its_panic_ends_there() {
    let hsa = Hsa::new();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let told = reports.clone();
    let runtime = runtime(&hsa).unwrap().with_reports(move |report| {
        told.lock().unwrap().push(report);
        std::panic::resume_unwind(Box::new("a sink that panics"));
    });
    let serializer = runtime.serializer(Builder::default().domain(Domain::new()));
    let queue = serializer.add_queue().unwrap();
    let handler = hsa.handler(0);
    hsa.with(|hsa| hsa.destroying = hsa_status_t::ERROR);
    serializer.queue_destroyed(queue.id()).unwrap();
    drop(queue);
    assert!(!handler.call());
    serializer.collect();

    let reports = std::mem::take(&mut *reports.lock().unwrap());
    assert_eq!(reports.len(), 2, "{reports:?}"); // ready and block
    for report in reports {
        let failed = hsa_status_t::ERROR;
        assert!(
            matches!(report, Report::DestroyFailed { status, .. } if status == failed),
            "{report:?}"
        );
    }
}

#[test]
fn without_its_way_back_a_runtime_adds_no_queue() {
    let hsa = Hsa::new();
    let serializer = Serializer::new(runtime(&hsa).unwrap());
    assert_eq!(
        serializer.add_queue().unwrap_err(),
        AddQueueError::Watch(hsa_status_t::ERROR_INVALID_RUNTIME_STATE)
    );
    assert!(hsa.with(|hsa| hsa.handlers.is_empty()));
    drop(serializer);
    assert!(hsa.with(|hsa| hsa.signals.is_empty()));
}

/// What a runtime that delegates registers: answers the queue's id, which its pointer is.
unsafe extern "C" fn of_somebody_else(_: hsa_signal_value_t, arg: *mut c_void) -> bool {
    SEEN.store(arg.addr() as u64, SeqCst);
    false
}

static SEEN: AtomicU64 = AtomicU64::new(0);

#[test]
fn with_a_handler_of_somebody_elses_that_one_is_registered() {
    let hsa = Hsa::new();
    let serializer = Serializer::new(runtime(&hsa).unwrap().with_handler(of_somebody_else));
    let queue = serializer.add_queue().unwrap();
    assert!(!hsa.handler(0).call());
    assert_eq!(SEEN.load(SeqCst), queue.id().to_raw());
    // The thread that calls handlers was asked for.
    assert!(!serializer.runtime().is_handler_thread());
    std::thread::scope(|scope| {
        let handlers = scope.spawn(|| {
            hsa.call_functions();
            serializer.runtime().is_handler_thread()
        });
        assert!(handlers.join().unwrap());
    });
    serializer.queue_destroyed(queue.id()).unwrap();
    let _ = serializer.ready(queue.id());
    drop((queue, serializer));
    assert!(hsa.with(|hsa| hsa.signals.is_empty()));
}

/// Handlers look while serializers come and go: what they find is alive, or it is nothing.
#[test]
fn handlers_run_while_serializers_come_and_go() {
    const ROUNDS: usize = 300;
    let hsa = Hsa::new();
    let kept = serializer(&hsa);
    let queue = kept.add_queue().unwrap();
    let of_kept = hsa.handler(0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let hsa = &hsa;
        let stop = &stop;
        let caller = scope.spawn(move || {
            let mut calls = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                assert!(of_kept.call(), "the one that is there is found");
                let all = hsa.with(|hsa| hsa.handlers.clone());
                for handler in all.iter().rev().take(8) {
                    handler.call();
                }
                calls += 1;
            }
            calls
        });
        let comers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        let serializer = serializer(hsa);
                        let queue = serializer.add_queue().unwrap();
                        serializer.queue_destroyed(queue.id()).unwrap();
                    }
                })
            })
            .collect();
        for comer in comers {
            comer.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        assert!(caller.join().unwrap() > 0);
    });
    // Everybody else is gone.
    let handlers = hsa.with(|hsa| hsa.handlers.clone());
    assert_eq!(handlers.len(), 2 * ROUNDS + 1);
    assert!(handlers[1..].iter().all(|handler| !handler.call()));
    drop((queue, kept));
    assert!(hsa.with(|hsa| hsa.signals.is_empty()));
}

/// A profiler makes queues for days: what was made and has gone leaves nothing behind, though HSA
/// keeps every handler's entry.
#[test]
fn neither_queues_nor_serializers_leave_anything() {
    let hsa = Hsa::new();
    let round = |serializers: usize, queues: usize| {
        for _ in 0..serializers {
            let serializer = serializer(&hsa);
            for _ in 0..queues {
                let queue = serializer.add_queue().unwrap();
                serializer.queue_destroyed(queue.id()).unwrap();
                let handler = hsa.with(|hsa| hsa.handlers.pop().unwrap());
                assert!(!handler.call());
            }
        }
        hsa.with(|hsa| hsa.made = Vec::new());
        ALLOCATED.load(Ordering::Relaxed)
    };
    round(2, 2);
    let before = round(2, 2);
    // The test harness allocates, too, so it is not exactly nothing.
    let grown = round(100, 1) - before;
    assert!(grown < 100 * 40, "{grown} bytes for 100 serializers");
    let grown = round(1, 2_000) - before;
    assert!(grown < 2_000 * 4, "{grown} bytes for 2,000 queues");
}

#[test]
fn a_status_is_named_or_told_by_the_runtime_or_given_as_a_number() {
    let hsa = Hsa::new();
    let runtime = runtime(&hsa).unwrap();
    assert_eq!(runtime.agent(), AGENT);
    let named = hsa_status_t::ERROR_OUT_OF_RESOURCES;
    assert_eq!(runtime.status_text(named), named.name().unwrap());
    let told = hsa_status_t(0x2001);
    assert_eq!(
        runtime.status_text(told),
        format!("{told}: the coffee is cold")
    );
    // Success without a text; a refusal that leaves one all the same.
    for nobodys in [0x2002, 0x2003].map(hsa_status_t) {
        assert_eq!(runtime.status_text(nobodys), nobodys.to_string());
    }
}
