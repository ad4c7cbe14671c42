//! Everything at once, on threads, for as long as is asked for.

use crate::spy::Seat;
use crate::stage::{Rig, Threaded, bounded_by, seat, toggle};
use softgpu::{Config, Kernel, Queue, QueueConfig};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

const AGENTS: usize = 3;
const QUEUES: usize = 4;
const IN_FLIGHT: usize = 48;

struct Soak {
    t: Threaded,
    /// The queues of each agent, which come and go.
    slots: Vec<Vec<Mutex<Queue>>>,
    stop: AtomicBool,
    submitted: AtomicU64,
    refused: AtomicU64,
    /// Queues destroyed, by what they were doing just before.
    destroyed: Mutex<BTreeMap<String, u64>>,
    looked: AtomicU64,
}

impl Soak {
    fn goes_on(&self) -> bool {
        !self.stop.load(SeqCst)
    }

    fn submits(&self, agent: usize, seed: u64) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let rig = self.t.agent(agent);
        while self.goes_on() {
            if rig.in_flight() >= IN_FLIGHT {
                thread::sleep(Duration::from_micros(50));
                continue;
            }
            let queue = self.slots[agent][rng.usize(..QUEUES)]
                .lock()
                .unwrap()
                .clone();
            let kernel = Kernel::lasting(rng.u64(..20_000)).packet();
            let batch = vec![kernel; rng.usize(1..4)];
            match queue.submit(&batch) {
                Ok(()) => self.submitted.fetch_add(batch.len() as u64, SeqCst),
                Err(_) => self.refused.fetch_add(1, SeqCst),
            };
        }
    }

    fn toggles(&self, agent: usize) {
        let mut rng = fastrand::Rng::with_seed(agent as u64);
        let mut on = false;
        while self.goes_on() {
            on = !on;
            toggle(self.t.agent(agent), on);
            thread::sleep(Duration::from_micros(rng.u64(..400)));
        }
    }

    fn destroys(&self, agent: usize) {
        let mut rng = fastrand::Rng::with_seed(100 + agent as u64);
        let rig = self.t.agent(agent);
        while self.goes_on() {
            let new = rig.create_queue(QueueConfig::default()).unwrap();
            let slot = &self.slots[agent][rng.usize(..QUEUES)];
            let wanted = [Seat::Idle, Seat::Waiting, Seat::Granted, Seat::Running][rng.usize(..4)];
            let old = std::mem::replace(&mut *slot.lock().unwrap(), new);
            // Not for long: it may never be in that state again.
            let patience = Instant::now() + Duration::from_millis(2);
            let mut state = seat(rig, &old);
            while state != wanted && Instant::now() < patience {
                state = seat(rig, &old);
            }
            if rng.u8(..4) == 0 {
                rig.inactivate_queue(&old).unwrap();
            }
            rig.destroy_queue(&old).unwrap();
            let mut destroyed = self.destroyed.lock().unwrap();
            *destroyed.entry(format!("{state:?}")).or_default() += 1;
            drop(destroyed);
            thread::sleep(Duration::from_micros(rng.u64(..3_000)));
        }
    }

    /// SCENARIOS 67: diagnostics while signals are retired and recycled.
    fn looks(&self) {
        while self.goes_on() {
            for agent in 0..AGENTS {
                let serializer = self.t.agent(agent).serializer().inner();
                let text = format!("{serializer:?} {:?}", serializer.statistics());
                self.looked.fetch_add(text.len() as u64, SeqCst);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn sum<T>(all: &[T], of: impl Fn(&T) -> u64) -> u64 {
    all.iter().map(of).sum()
}

#[test]
fn soak_s67_queues_come_and_go_on_several_agents_while_everybody_toggles() {
    let seconds = std::env::var("SOAK_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let seconds = seconds.unwrap_or(5);
    bounded_by(Duration::from_secs(seconds + 60), move || soak(seconds));
}

fn soak(seconds: u64) {
    let t = Threaded::new(Config {
        agents: AGENTS,
        handler_threads: 2,
        ..Config::default()
    });
    let made = |rig: &Rig| Mutex::new(rig.create_queue(QueueConfig::default()).unwrap());
    let slots = (0..AGENTS).map(|n| (0..QUEUES).map(|_| made(t.agent(n))).collect());
    let soak = Soak {
        slots: slots.collect(),
        t,
        stop: AtomicBool::new(false),
        submitted: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        destroyed: Mutex::default(),
        looked: AtomicU64::new(0),
    };
    thread::scope(|scope| {
        let soak = &soak;
        for agent in 0..AGENTS {
            scope.spawn(move || soak.toggles(agent));
            scope.spawn(move || soak.destroys(agent));
            for n in 0..2 {
                scope.spawn(move || soak.submits(agent, (2 * agent + n) as u64));
            }
        }
        scope.spawn(|| soak.looks());
        // A second at a time, so that who fails is waited for no longer than that.
        for _ in 0..seconds {
            thread::sleep(Duration::from_secs(1));
            if soak.t.gpu().witness().counts().total() > 0 {
                break;
            }
        }
        soak.stop.store(true, SeqCst);
    });
    let Soak {
        t,
        slots,
        submitted,
        refused,
        destroyed,
        looked,
        ..
    } = soak;
    t.idle();
    let passed_on: u64 = (0..AGENTS).map(|n| t.agent(n).passed_on()).sum();
    let end = t.finish(slots);
    let (stats, signals) = (&end.stats, end.signals);
    let destroyed = destroyed.into_inner().unwrap();
    let counters = [
        ("kernels", submitted.into_inner()),
        ("transitions", sum(stats, |s| s.transitions)),
        (
            "transitions that counted",
            sum(stats, |s| s.transitions_that_counted),
        ),
        ("tags", sum(stats, |s| s.tags)),
        ("handles recycled", signals.recycled),
        (
            "deferred retirements",
            sum(stats, |s| s.retired_after_drain),
        ),
        ("superseded", sum(stats, |s| s.superseded)),
        ("contended tokens", sum(stats, |s| s.grants_contended)),
        ("queues gone", sum(stats, |s| s.queues_gone)),
        ("bytes of diagnostics", looked.into_inner()),
    ];
    println!("{seconds} s: {counters:?}, destroyed {destroyed:?}");
    println!("refused {refused:?}, passed on {passed_on}, {signals:?}");
    for (name, count) in counters {
        assert!(count > 0, "{name}");
    }
    for state in [Seat::Idle, Seat::Waiting, Seat::Granted, Seat::Running] {
        assert!(
            destroyed.contains_key(&format!("{state:?}")),
            "{state:?}: {destroyed:?}"
        );
    }
    // Queues, kernels under way and barriers; far fewer than were ever made.
    assert_eq!(signals.failed, 0);
    assert!(signals.most_live < 1_500, "{signals:?}");
}
