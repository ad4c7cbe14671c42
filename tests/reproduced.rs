//! The faults of the locked original (docs/scenarios.md, E): each is shown by the yardstick, and absent
//! from the crate under the same schedule.
//!
//! Where a fault lies between two steps of a call, the schedule drives the yardstick's two steps;
//! the crate has one in their place, so its schedules are those with the other party before it and
//! after it.

use harness::{Failed, Load, Profiler, Run, Serializing, SoftRuntime};
use hsa_serializer::doc_runtime::Host;
use hsa_serializer::{
    AqlPacket, BarrierSet, Domain, MAX_PACKETS, Queue, QueueId, Runtime, Serializer, SignalKind,
    Transition,
};
use hsa_sys::{hsa_signal_t, hsa_signal_value_t, hsa_status_t};
use locked::{HsaBarrier, ProfilerSerializer, Retire};
use softgpu::{Config, Kernel, QueueConfig, VirtualGpu};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

fn of_crate(host: &Host) -> Serializer<Host> {
    Serializer::<Host>::builder()
        .domain(Domain::new())
        .build(host.clone())
}

fn of_locks(host: &Host) -> ProfilerSerializer<Host> {
    ProfilerSerializer::new(host.clone(), Retire::Drained)
}

fn dispatch(queue: &mut Queue<Host>) -> (hsa_serializer::Ticket, Vec<AqlPacket>) {
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let dispatch = queue.dispatch(&mut packets).unwrap();
    (dispatch.ticket, packets[..dispatch.packets].to_vec())
}

/// The signal that the first of these packets waits for, if that is a transition packet.
fn transition_signal(packets: &[AqlPacket]) -> Option<hsa_signal_t> {
    // The gates come in twos; a transition packet makes the number odd.
    (packets.len() % 2 == 1).then(|| packets[0].dependencies().unwrap()[0])
}

fn clean(run: &Run) {
    assert_eq!(run.violations.total(), 0, "{:#?}", run.examples.first());
    assert!(run.reports.is_empty(), "{:?}", run.reports);
    assert_eq!(run.untested(true), None);
    assert_eq!(run.passed_on, 0);
}

fn load(seed: u64) -> Load {
    Load {
        kernels: 10_000,
        toggles: 1_000,
        seed,
        ..Load::default()
    }
}

#[test]
fn r0_a_recycled_handle_hangs_the_yardstick_and_not_the_crate() {
    let mut transitions = Vec::new();
    for seed in 1..=20 {
        match harness::run_virtual(&load(seed), harness::eager_serializer, &|_| {}) {
            Err(Failed::Stuck(stuck)) => {
                let run = &stuck.1;
                assert!(run.violations.stale_packets > 0, "{}", stuck.0);
                transitions.push(run.counters.transitions);
            }
            other => panic!("seed {seed} did not hang: {other:?}"),
        }
    }
    println!("hangs after {transitions:?} transitions");

    for seed in 1..=3 {
        let run = harness::run_virtual(&load(seed), harness::drained_serializer, &|_| {});
        clean(&run.unwrap());
        let run = harness::run_virtual(&load(seed), harness::crate_serializer, &|_| {});
        clean(&run.unwrap());
    }
}

#[test]
fn r0_to_r2_do_not_happen_to_the_crate_on_threads() {
    let load = Load {
        kernels: 20_000,
        toggles: 2_500,
        ..Load::default()
    };
    let run = harness::run_threaded(&load, harness::crate_serializer, &|_| {}).unwrap();
    clean(&run);
    assert_eq!(run.counters.transitions, 2_500);
    assert_eq!(run.kernels.ended, 20_000);
}

#[test]
fn r1_a_kernel_is_counted_and_then_made_to_wait_for_itself() {
    let host = Host::default();
    let serializer = of_locks(&host);
    let queue = serializer.add_queue().unwrap();
    let kernel = queue.started();
    serializer.enable().unwrap();
    let packets = serializer.kernel_dispatch(&queue, kernel).packets;
    let signal = transition_signal(&packets).expect("it is made to wait");
    assert_eq!(host.value(signal), Some(1));
    // It would be the completion of this very kernel, which stands behind the packet, that clears
    // it.
    serializer.kernel_completion(&queue);
    assert_eq!(host.value(signal), Some(0));

    // The crate, with the transition after the dispatch: counted, and nothing to wait for.
    let host = Host::default();
    let serializer = of_crate(&host);
    let mut queue = serializer.add_queue().unwrap();
    let (_ticket, packets) = dispatch(&mut queue);
    let counted = Transition::Changed { waiting_for: 1 };
    assert_eq!(serializer.enable().unwrap(), counted);
    assert_eq!(transition_signal(&packets), None);

    // With the transition before it: it waits for another queue's kernel, and is not counted.
    let host = Host::default();
    let serializer = of_crate(&host);
    let mut other = serializer.add_queue().unwrap();
    let mut queue = serializer.add_queue().unwrap();
    let (old, _) = dispatch(&mut other);
    assert_eq!(serializer.enable().unwrap(), counted);
    let (_ticket, packets) = dispatch(&mut queue);
    let signal = transition_signal(&packets).expect("it has to wait");
    assert_eq!(host.value(signal), Some(1));
    serializer.complete(old).unwrap();
    assert_eq!(host.value(signal), Some(0));
}

#[test]
fn r2_a_completion_is_counted_after_it_was_reported() {
    let host = Host::default();
    let serializer = of_locks(&host);
    let queue = serializer.add_queue().unwrap();
    let kernel = queue.started();
    assert!(
        serializer
            .kernel_dispatch(&queue, kernel)
            .packets
            .is_empty()
    );
    serializer.kernel_completion(&queue);
    serializer.enable().unwrap();
    queue.ended();
    // Nothing is in flight, and the next kernel waits for what nobody will report again.
    assert_eq!(queue.in_flight(), 0);
    let kernel = queue.started();
    let packets = serializer.kernel_dispatch(&queue, kernel).packets;
    let signal = transition_signal(&packets).expect("it is made to wait");
    assert_eq!(host.value(signal), Some(1));

    for transition_first in [true, false] {
        let host = Host::default();
        let serializer = of_crate(&host);
        let mut queue = serializer.add_queue().unwrap();
        let (ticket, _) = dispatch(&mut queue);
        if transition_first {
            serializer.enable().unwrap();
            serializer.complete(ticket).unwrap();
        } else {
            serializer.complete(ticket).unwrap();
            let nobody = Transition::Changed { waiting_for: 0 };
            assert_eq!(serializer.enable().unwrap(), nobody);
        }
        let (_ticket, packets) = dispatch(&mut queue);
        assert_eq!(transition_signal(&packets), None);
    }
}

#[test]
fn r2b_a_count_is_read_twice() {
    let host = Host::default();
    let serializer = of_locks(&host);
    let queue = serializer.add_queue().unwrap();
    queue.started();
    let signal =
        hsa_serializer::Runtime::create_signal(&host, hsa_serializer::SignalKind::Barrier, 1)
            .unwrap();
    let barrier = HsaBarrier::new(signal);
    // `set_barrier` looks, a completion lands, `set_barrier` looks again and keeps what it sees.
    assert!(queue.in_flight() > 0);
    barrier.register_completion(&host, queue.id());
    queue.ended();
    barrier.wait_for(&queue);
    for _ in 0..10 {
        queue.started();
        barrier.register_completion(&host, queue.id());
        queue.ended();
    }
    assert!(!barrier.complete(&host), "it counts down from 0 for ever");

    // The crate: a completion lands at any moment of the arming, and the barrier clears.
    let set = BarrierSet::with(Serializer::<Host>::builder().domain(Domain::new()), host);
    let mut queue = set.add_queue().unwrap();
    let start = Arc::new(Barrier::new(2));
    for _ in 0..2_000 {
        let (ticket, _) = dispatch(&mut queue);
        let barrier = thread::scope(|scope| {
            let completer = scope.spawn(|| {
                start.wait();
                set.complete(ticket).unwrap();
            });
            start.wait();
            let barrier = set.arm(|_| {}).unwrap();
            completer.join().unwrap();
            barrier
        });
        assert!(barrier.is_cleared());
    }
}

#[test]
fn r3_a_kernel_is_counted_whose_completion_is_not_reported() {
    let host = Host::default();
    let serializer = of_locks(&host);
    let queue = serializer.add_queue().unwrap();
    let kernel = queue.started();
    assert!(!serializer.kernel_dispatch(&queue, kernel).serialized);
    serializer.enable().unwrap();
    // It was not serialized, so the profiler tells the serializer nothing of its end.
    queue.ended();
    let kernel = queue.started();
    let packets = serializer.kernel_dispatch(&queue, kernel).packets;
    let signal = transition_signal(&packets).expect("it is made to wait");
    assert_eq!(host.value(signal), Some(1));

    // The crate has a ticket for that kernel as for any other, and nothing else that counts it.
    let host = Host::default();
    let serializer = of_crate(&host);
    let mut queue = serializer.add_queue().unwrap();
    let (unserialized, _) = dispatch(&mut queue);
    serializer.enable().unwrap();
    let (_ticket, packets) = dispatch(&mut queue);
    let signal = transition_signal(&packets).expect("it has to wait");
    assert_eq!(host.value(signal), Some(1));
    serializer.complete(unserialized).unwrap();
    assert_eq!(host.value(signal), Some(0));
}

/// The holder of the token is destroyed while its kernel runs for ever; whether another queue's
/// kernel, which waits for the token, then runs.
fn goes_on_without_the_holder<S: Serializing>(make: impl FnOnce(SoftRuntime) -> S) -> bool {
    let mut gpu = VirtualGpu::new(Config::seed(4));
    let profiler = Profiler::new(gpu.gpu(), gpu.agent(0), make);
    let holder = profiler.create_queue(QueueConfig::default()).unwrap();
    let other = profiler.create_queue(QueueConfig::default()).unwrap();
    profiler.enable().unwrap();
    holder.submit(&[Kernel::endless().packet()]).unwrap();
    gpu.run_until(|| holder.running() == 1).unwrap();
    other.submit(&[Kernel::lasting(1_000).packet()]).unwrap();
    let stuck = gpu.run_until_idle().unwrap_err();
    assert_eq!(stuck.waits.len(), 2, "{stuck}");
    profiler.destroy_queue(&holder).unwrap();
    gpu.run_until_idle().is_ok() && profiler.in_flight() == 0
}

#[test]
fn r4_the_token_is_lost_with_its_queue() {
    assert!(!goes_on_without_the_holder(harness::drained_serializer));
    assert!(goes_on_without_the_holder(harness::crate_serializer));
}

/// A runtime whose next write of a signal stops until it is let go on.
#[derive(Clone, Default)]
struct Stops {
    host: Host,
    next: Arc<Mutex<Option<Stop>>>,
}

struct Stop {
    arrived: Sender<()>,
    go: Receiver<()>,
}

impl Stops {
    fn write(&self) {
        let next = self.next.lock().unwrap().take();
        if let Some(stop) = next {
            stop.arrived.send(()).unwrap();
            stop.go.recv_timeout(LONG).unwrap();
        }
    }
}

impl Runtime for Stops {
    fn create_signal(
        &self,
        kind: SignalKind,
        initial: hsa_signal_value_t,
    ) -> Result<hsa_signal_t, hsa_status_t> {
        self.host.create_signal(kind, initial)
    }

    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        self.host.destroy_signal(signal)
    }

    fn store(&self, signal: hsa_signal_t, value: hsa_signal_value_t) {
        self.write();
        self.host.store(signal, value);
    }

    fn compare_exchange(
        &self,
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        desired: hsa_signal_value_t,
    ) -> hsa_signal_value_t {
        self.write();
        self.host.compare_exchange(signal, expected, desired)
    }

    fn watch_ready(&self, ready: hsa_signal_t, queue: QueueId) -> Result<(), hsa_status_t> {
        self.host.watch_ready(ready, queue)
    }
}

const LONG: Duration = Duration::from_secs(60);

/// While a handler is in the middle of its call, one thread switches and, a little later, another
/// destroys a queue; whether both come back once the handler does. They are left behind where they
/// do not.
fn both_come_back<S: Serializing>(make: impl FnOnce(Stops) -> S) -> bool {
    let stops = Stops::default();
    let serializer = Arc::new(make(stops.clone()));
    serializer.enable().unwrap();
    let mut ready = serializer.add_queue().unwrap();
    let doomed = serializer.add_queue().unwrap();
    let (ready_id, doomed_id) = (S::id(&ready), S::id(&doomed));
    let dispatched = serializer.dispatch(&mut ready, &mut Vec::new()).unwrap();

    let (arrived, has_arrived) = channel();
    let (lets_go, go) = channel();
    *stops.next.lock().unwrap() = Some(Stop { arrived, go });
    let (came_back, back) = channel();
    let spawn = |step: Box<dyn FnOnce(&S) + Send>| {
        let (serializer, came_back) = (serializer.clone(), came_back.clone());
        thread::spawn(move || {
            step(&serializer);
            // Nobody listens any more where one of the others did not come back.
            let _ = came_back.send(());
        });
    };
    spawn(Box::new(move |serializer| {
        let _ = serializer.ready(ready_id);
    }));
    has_arrived.recv_timeout(LONG).expect("the handler writes");
    // That a thread waits for a lock does not show; these are long enough for it.
    spawn(Box::new(|serializer| {
        serializer.disable().unwrap();
    }));
    thread::sleep(Duration::from_millis(10));
    spawn(Box::new(move |serializer| {
        serializer.queue_destroyed(doomed_id);
    }));
    thread::sleep(Duration::from_millis(10));
    lets_go.send(()).unwrap();
    let all = (0..3).all(|_| back.recv_timeout(Duration::from_secs(2)).is_ok());
    if all {
        serializer.complete(dispatched.ticket);
    }
    all
}

#[test]
fn r5_destroying_and_enabling_lock_in_opposite_order() {
    // Whoever waited first is let in first, but nobody promises that: hence the attempts.
    let locks =
        |runtime| harness::LockedSerializer(ProfilerSerializer::new(runtime, Retire::Drained));
    assert!((0..20).any(|_| !both_come_back(locks)));
    for _ in 0..20 {
        assert!(both_come_back(|runtime| {
            Serializer::<Stops>::builder()
                .domain(Domain::new())
                .build(runtime)
        }));
    }
}
