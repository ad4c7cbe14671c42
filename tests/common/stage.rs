//! What the scenarios share: an emulated machine, in virtual time or on threads, with a profiler on
//! each agent, and an end that checks what every scenario has to leave behind: nothing.

use super::spy::{Hooked, Seat, Spy};
use harness::{Instrument, Profiler, SoftRuntime};
use hsa_serializer::{OnMisuse, QueueId, Report, Serializer, Statistics};
use hsa_sys::hsa_signal_t;
use softgpu::{
    Config, Gpu, Kernel, KernelStats, Queue, QueueConfig, SignalKind, SignalStats, Stuck,
    ThreadedGpu, VirtualGpu,
};
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

pub(crate) type Rig = Profiler<Hooked>;

pub(crate) const SEEDS: std::ops::Range<u64> = 0..40;

/// No scenario takes more steps, or more time on threads, than this.
const STEPS: u64 = 20_000_000;
const PATIENCE: Duration = Duration::from_secs(180);

pub(crate) fn make(runtime: SoftRuntime) -> Hooked {
    Hooked::new(Spy::new(runtime), OnMisuse::Release)
}

/// What a scenario's end may show, beside nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Expect {
    /// The host has broken the contract so often.
    pub(crate) misuse: u64,
    /// Exclusiveness was given up: kernels ran side by side.
    pub(crate) overlaps: bool,
}

/// A machine's handle, its profilers and the application's own signals.
pub(crate) struct Rigs {
    gpu: Gpu,
    rigs: Vec<Arc<Rig>>,
    signals: Mutex<Vec<hsa_signal_t>>,
}

impl Rigs {
    fn new(
        gpu: &Gpu,
        make: impl Fn(SoftRuntime) -> Hooked,
        instrument: Option<Instrument>,
    ) -> Self {
        let mut instrument = instrument;
        let rigs = gpu.agents().iter().map(|agent| {
            Arc::new(match instrument.take() {
                Some(instrument) => Profiler::instrumented(gpu, *agent, &make, instrument),
                None => Profiler::new(gpu, *agent, &make),
            })
        });
        Self {
            gpu: gpu.clone(),
            rigs: rigs.collect(),
            signals: Mutex::default(),
        }
    }

    pub(crate) fn rig(&self) -> &Arc<Rig> {
        &self.rigs[0]
    }

    pub(crate) fn agent(&self, n: usize) -> &Arc<Rig> {
        &self.rigs[n]
    }

    pub(crate) fn queue(&self) -> Queue {
        self.queue_with(QueueConfig::default())
    }

    pub(crate) fn ring(&self, slots: usize) -> Queue {
        self.queue_with(QueueConfig {
            slots,
            ..QueueConfig::default()
        })
    }

    pub(crate) fn queue_with(&self, config: QueueConfig) -> Queue {
        self.rig().create_queue(config).unwrap()
    }

    /// A signal of the application's.
    pub(crate) fn signal(&self, value: i64) -> hsa_signal_t {
        let kind = SignalKind::Interrupt;
        let signal = self.gpu.signals().create_labelled(value, kind, "app");
        let signal = signal.unwrap();
        self.signals.lock().unwrap().push(signal);
        signal
    }

    pub(crate) fn load(&self, signal: hsa_signal_t) -> i64 {
        self.gpu.signals().load(signal)
    }

    pub(crate) fn store(&self, signal: hsa_signal_t, value: i64) {
        self.gpu.signals().store(signal, value);
    }

    pub(crate) fn stats(&self) -> Statistics {
        self.rig().serializer().inner().statistics()
    }

    pub(crate) fn seat(&self, queue: &Queue) -> Seat {
        seat(self.rig(), queue)
    }

    pub(crate) fn serializer(&self) -> &Serializer<Spy> {
        self.rig().serializer().inner()
    }

    pub(crate) fn spy(&self) -> &Spy {
        self.rig().serializer().spy()
    }

    pub(crate) fn id(&self, queue: &Queue) -> QueueId {
        self.rig().id_of(queue).unwrap()
    }

    fn violations(&self) -> softgpu::Counts {
        self.gpu.witness().counts()
    }

    /// How often kernels ran side by side that should not have.
    pub(crate) fn overlaps(&self) -> u64 {
        let seen = self.violations();
        seen.overlaps + seen.mode_overlaps + seen.old_after_new
    }

    /// Violations that no loss of exclusiveness explains.
    fn unsafe_violations(&self) -> u64 {
        self.violations().total() - self.overlaps()
    }

    /// Destroys every queue, each by its agent's profiler.
    fn destroy_queues(&self) {
        for queue in self.gpu.queues() {
            let place = self.gpu.agents().iter().position(|a| *a == queue.agent());
            self.rigs[place.unwrap()].destroy_queue(&queue).unwrap();
        }
    }

    /// Checks what must hold when every queue is gone and nothing is pending.
    fn check(&self, expect: Expect) -> End {
        let mut end = End {
            signals: self.gpu.signals().stats(),
            kernels: self.gpu.witness().kernels(self.gpu.agent(0)),
            stats: Vec::new(),
        };
        for rig in &self.rigs {
            let serializer = rig.serializer().inner();
            for _ in 0..100_000 {
                if serializer.statistics().reclaim_pending == 0 {
                    break;
                }
                serializer.collect();
            }
            let stats = serializer.statistics();
            assert_eq!(stats.reclaim_pending, 0, "{stats:?}");
            assert_eq!(stats.contenders, 0, "{stats:?}");
            assert_eq!(stats.queues, 0, "{stats:?}");
            assert_eq!(stats.barriers_live, 0, "{stats:?}");
            assert_eq!(stats.barriers, stats.reclaimed, "{stats:?}");
            assert_eq!(stats.misuse, expect.misuse, "{stats:?}");
            let mut reports = rig.reports().list();
            // Misuse is followed by one more, of what was done about it.
            let released = reports.iter().position(|r| *r == Report::Released);
            let released = released.map(|place| reports.remove(place));
            assert_eq!(released.is_some(), expect.misuse > 0);
            assert_eq!(reports.len() as u64, expect.misuse);
            let late = rig.serializer().spy().record().late();
            assert!(late.is_empty(), "called after the end: {late:?}");
            end.stats.push(stats);
        }
        if !expect.overlaps {
            self.gpu.witness().assert_clean();
        }
        assert_eq!(self.unsafe_violations(), 0, "{:?}", self.violations());
        for signal in std::mem::take(&mut *self.signals.lock().unwrap()) {
            self.gpu.signals().destroy(signal).unwrap();
        }
        end
    }
}

/// What a scenario came to.
pub(crate) struct End {
    pub(crate) stats: Vec<Statistics>,
    pub(crate) signals: SignalStats,
    pub(crate) kernels: KernelStats,
}

impl End {
    pub(crate) fn of(&self) -> &Statistics {
        &self.stats[0]
    }
}

fn leaves_no_signal(gpu: &Gpu) {
    let live = gpu.signals().stats().live;
    assert_eq!(live, 0, "signals that nobody destroyed");
}

pub(crate) fn seat(rig: &Rig, queue: &Queue) -> Seat {
    let id = rig.id_of(queue).unwrap();
    let runtime = rig.serializer().inner().runtime();
    runtime.seat(rig.gpu().signals(), id)
}

/// Virtual time.
pub(crate) struct Virtual {
    gpu: VirtualGpu,
    rigs: Rigs,
}

impl Deref for Virtual {
    type Target = Rigs;

    fn deref(&self) -> &Rigs {
        &self.rigs
    }
}

impl DerefMut for Virtual {
    fn deref_mut(&mut self) -> &mut Rigs {
        &mut self.rigs
    }
}

impl Virtual {
    pub(crate) fn new(seed: u64) -> Self {
        Self::with(Config::seed(seed))
    }

    pub(crate) fn with(config: Config) -> Self {
        let gpu = VirtualGpu::new(config);
        let rigs = Rigs::new(gpu.gpu(), make, None);
        Self { gpu, rigs }
    }

    pub(crate) fn instrumented(seed: u64, instrument: Instrument) -> Self {
        let gpu = VirtualGpu::new(Config::seed(seed));
        let rigs = Rigs::new(gpu.gpu(), make, Some(instrument));
        Self { gpu, rigs }
    }

    /// With serializers that `make` makes.
    pub(crate) fn made(seed: u64, make: impl Fn(SoftRuntime) -> Hooked) -> Self {
        let gpu = VirtualGpu::new(Config::seed(seed));
        let rigs = Rigs::new(gpu.gpu(), make, None);
        Self { gpu, rigs }
    }

    pub(crate) fn gpu(&self) -> &Gpu {
        self.gpu.gpu()
    }

    pub(crate) fn draw(&self, n: u64) -> u64 {
        self.gpu.draw(n)
    }

    /// One step; false if nothing can happen.
    pub(crate) fn step(&mut self) -> bool {
        self.gpu.step().is_some()
    }

    pub(crate) fn steps(&mut self, n: u64) {
        for _ in 0..n {
            if !self.step() {
                return;
            }
        }
    }

    #[track_caller]
    pub(crate) fn until(&mut self, mut done: impl FnMut(&Self) -> bool) {
        let mut steps = 0;
        while !done(self) {
            let went = self.gpu.step().is_some();
            steps += 1;
            assert!(went && steps < STEPS, "stuck: {}", self.gpu.describe());
        }
    }

    #[track_caller]
    pub(crate) fn idle(&mut self) {
        if let Err(stuck) = self.gpu.run_until_idle() {
            panic!("{stuck}");
        }
    }

    /// Runs until nothing goes on; whether that is because somebody waits for ever.
    pub(crate) fn waits(&mut self) -> Option<Stuck> {
        self.gpu.run_until_idle().err()
    }

    /// The application lets go of its queues; everything ends.
    pub(crate) fn finish<Q>(self, queues: Q) -> End {
        self.finish_as(Expect::default(), queues)
    }

    /// The end of a scenario whose host has broken the contract so often.
    pub(crate) fn finish_with<Q>(self, misuse: u64, queues: Q) -> End {
        let overlaps = false;
        self.finish_as(Expect { misuse, overlaps }, queues)
    }

    pub(crate) fn finish_as<Q>(mut self, expect: Expect, queues: Q) -> End {
        self.destroy_queues();
        self.idle();
        let end = self.rigs.check(expect);
        let gpu = self.gpu.gpu().clone();
        drop((self, queues));
        leaves_no_signal(&gpu);
        end
    }
}

thread_local! {
    /// Where a scenario on threads leaves its machine for whoever finds it stuck.
    static PROBE: RefCell<Option<Arc<Mutex<Option<Gpu>>>>> = const { RefCell::new(None) };
}

/// Runs a scenario on threads; says who waits for whom if it does not come to its end.
pub(crate) fn bounded(scenario: impl FnOnce() + Send + 'static) {
    bounded_by(PATIENCE, scenario);
}

pub(crate) fn bounded_by(patience: Duration, scenario: impl FnOnce() + Send + 'static) {
    let probe = Arc::new(Mutex::new(None));
    let (ended, ends) = mpsc::channel();
    let left = probe.clone();
    let body = thread::spawn(move || {
        PROBE.set(Some(left));
        scenario();
        // Nobody listens any more where it came too late.
        let _ = ended.send(());
    });
    match ends.recv_timeout(patience) {
        Err(mpsc::RecvTimeoutError::Timeout) => {
            let gpu: Option<Gpu> = probe.lock().unwrap().take();
            let waits = gpu.map(|gpu| gpu.describe().to_string());
            panic!("not at its end in time; {}", waits.unwrap_or_default());
        }
        _ => {
            if let Err(panic) = body.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// Real threads. To be used within [`bounded`].
pub(crate) struct Threaded {
    gpu: ThreadedGpu,
    rigs: Rigs,
}

impl Deref for Threaded {
    type Target = Rigs;

    fn deref(&self) -> &Rigs {
        &self.rigs
    }
}

impl Threaded {
    pub(crate) fn new(config: Config) -> Self {
        let gpu = ThreadedGpu::new(config);
        let rigs = Rigs::new(gpu.gpu(), make, None);
        PROBE.with_borrow(|probe| {
            if let Some(probe) = probe {
                *probe.lock().unwrap() = Some(gpu.gpu().clone());
            }
        });
        Self { gpu, rigs }
    }

    pub(crate) fn gpu(&self) -> &Gpu {
        self.gpu.gpu()
    }

    #[track_caller]
    pub(crate) fn idle(&self) {
        if let Err(stuck) = self.gpu.wait_idle(PATIENCE) {
            panic!("{stuck}");
        }
    }

    pub(crate) fn until(&self, mut done: impl FnMut(&Self) -> bool) {
        while !done(self) {
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// The application lets go of its queues; everything ends.
    pub(crate) fn finish<Q>(self, queues: Q) -> End {
        self.finish_as(Expect::default(), queues)
    }

    pub(crate) fn finish_as<Q>(self, expect: Expect, queues: Q) -> End {
        self.destroy_queues();
        self.idle();
        let end = self.rigs.check(expect);
        let gpu = self.gpu.gpu().clone();
        self.gpu.finish();
        drop((self.rigs, queues));
        leaves_no_signal(&gpu);
        end
    }
}

/// A kernel of a microsecond that tells `done`.
pub(crate) fn short(done: hsa_signal_t) -> Kernel {
    Kernel::lasting(1_000).completion(done)
}

pub(crate) fn toggle(rig: &Rig, on: bool) -> bool {
    if on {
        rig.enable().unwrap()
    } else {
        rig.disable().unwrap()
    }
}
