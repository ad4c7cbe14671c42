//! One round: a machine, a profiler, an application, and everything that happens to them until all of it
//! has to be gone.

use crate::lock;
use crate::reign::Reign;
use crate::runtime::Calls;
use crate::succession::{Ending, Slot, Succession};
use crate::tally::Tally;
use fastrand::Rng;
use harness::Profiler;
use hsa_serializer::{Domain, Serializer, ShutdownError, Ticket};
use hsa_sys::{SignalCondition, hsa_signal_t};
use softgpu::{Config, Gpu, Kernel, Queue, QueueConfig, SignalKind, ThreadedGpu};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Queues that the application has at a time.
pub(crate) const QUEUES: usize = 4;
/// The application holds back while so many kernels are under way.
const IN_FLIGHT: usize = 32;
/// And while so many packets of a queue were not launched.
const PENDING: u64 = 40;
/// So many kernels of a queue run at a time: of those that run side by side when they must not, each
/// pair is a loss, and the witness keeps a thousand.
const RUNNING: usize = 4;
/// A program that has not come to its end by itself after so long gives up.
const GIVES_UP: Duration = Duration::from_millis(300);
/// What has to end at the end of a round takes no longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What all threads of a round share.
pub(crate) struct Round {
    pub(crate) gpu: Gpu,
    pub(crate) profiler: Profiler<Succession>,
    pub(crate) queues: Vec<Mutex<(Queue, Arc<Slot>)>>,
    pub(crate) stop: AtomicBool,
    /// Some creations of signals fail.
    pub(crate) scarce: bool,
    next_kernel: AtomicU32,
    /// What programs wait for, until when.
    waits: Mutex<Vec<(hsa_signal_t, Instant)>>,
    /// The application's signals.
    signals: Mutex<Vec<hsa_signal_t>>,
    /// What handlers still have to do.
    on_handlers: AtomicUsize,
    calls: Mutex<Vec<Arc<Calls>>>,
    /// Of a reign that was left, with its signals.
    left: Mutex<Option<Arc<Calls>>>,
}

impl Round {
    pub(crate) fn succession(&self) -> &Succession {
        self.profiler.serializer()
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.succession().tally
    }

    pub(crate) fn goes_on(&self) -> bool {
        !self.stop.load(SeqCst)
    }

    /// Whether enough is under way, in all or in this queue, which holds what was passed on besides.
    pub(crate) fn is_full(&self, place: usize) -> bool {
        let (queue, _) = self.queue(place);
        let pending = queue.write_index().saturating_sub(queue.read_index());
        self.profiler.in_flight() >= IN_FLIGHT || pending >= PENDING
    }

    pub(crate) fn queue(&self, place: usize) -> (Queue, Arc<Slot>) {
        lock(&self.queues[place]).clone()
    }

    fn create_queue(profiler: &Profiler<Succession>) -> Option<(Queue, Arc<Slot>)> {
        let config = QueueConfig {
            most_running: RUNNING,
            ..QueueConfig::default()
        };
        let queue = profiler.create_queue(config).ok()?;
        let slot = profiler.serializer().slot(profiler.id_of(&queue)?)?;
        slot.queue.set(queue.id()).ok()?;
        Some((queue, slot))
    }

    /// Another queue takes its place; whether there was one to be had.
    pub(crate) fn replace_queue(&self, place: usize, inactivate: bool) -> bool {
        let Some(new) = Self::create_queue(&self.profiler) else {
            return false;
        };
        let (old, _) = std::mem::replace(&mut *lock(&self.queues[place]), new);
        if inactivate {
            self.profiler.inactivate_queue(&old).expect("it was there");
        }
        self.profiler.destroy_queue(&old).expect("it was there");
        self.tally().add("queues", 1);
        true
    }

    /// Submits; whether the queue was there.
    pub(crate) fn submit(&self, (queue, slot): &(Queue, Arc<Slot>), kernels: &[Kernel]) -> bool {
        let _in_order = lock(&slot.submitting);
        let first = self.next_kernel.fetch_add(kernels.len() as u32, SeqCst);
        let numbers = first..first + kernels.len() as u32;
        let numbered = kernels.iter().zip(numbers.clone());
        let packets: Vec<_> = numbered.map(|(k, n)| k.id(n).packet()).collect();
        let begun = self.gpu.now();
        *lock(&slot.upcoming) = numbers.collect();
        let there = queue.submit(&packets).is_ok();
        let left = std::mem::take(&mut *lock(&slot.upcoming));
        // For these the profiler had no signal.
        for kernel in left.into_iter().filter(|_| there) {
            slot.unseen.store(true, SeqCst);
            self.succession().passed_on(kernel, begun, slot);
        }
        there
    }

    /// Submits past the interceptor.
    pub(crate) fn submit_unseen(&self, (queue, slot): &(Queue, Arc<Slot>), kernel: Kernel) {
        let _in_order = lock(&slot.submitting);
        if queue.submit_unseen(&[kernel.packet()]).is_ok() {
            slot.unseen.store(true, SeqCst);
        }
    }

    /// A signal of the application's, of value 1.
    pub(crate) fn signal(&self) -> Option<hsa_signal_t> {
        let kind = SignalKind::Interrupt;
        let made = self.gpu.signals().create_labelled(1, kind, "app").ok()?;
        (!made.is_null()).then(|| {
            lock(&self.signals).push(made);
            made
        })
    }

    /// A program that waits for this signal gives up some day.
    pub(crate) fn gives_up(&self, signal: hsa_signal_t) {
        lock(&self.waits).push((signal, Instant::now() + GIVES_UP));
    }

    pub(crate) fn give_up(&self, all: bool) {
        let now = Instant::now();
        lock(&self.waits).retain(|(signal, until)| {
            let over = all || *until < now;
            if over {
                self.gpu.signals().store(*signal, 0);
            }
            !over
        });
    }

    /// Does something on a handler's thread.
    pub(crate) fn on_handler(self: &Arc<Self>, what: impl FnOnce(&Arc<Self>) + Send + 'static) {
        let created = self.gpu.signals().create(1, SignalKind::Interrupt);
        let Some(signal) = created.ok().filter(|signal| !signal.is_null()) else {
            return;
        };
        self.on_handlers.fetch_add(1, SeqCst);
        let (round, mut what) = (self.clone(), Some(what));
        let handler = move |_| {
            if let Some(what) = what.take() {
                what(&round);
                let _ = round.gpu.signals().destroy(signal);
                round.on_handlers.fetch_sub(1, SeqCst);
            }
            false
        };
        let signals = self.gpu.signals();
        let registered = signals.on_signal(signal, SignalCondition::Lt, 1, Box::new(handler));
        registered.expect("the signal is alive");
        signals.store(signal, 0);
    }

    /// Tries to finish each reign that has ended.
    pub(crate) fn bury(self: &Arc<Self>, rng: &mut Rng, patience: Duration) {
        let succession = self.succession();
        let old = lock(&succession.old).clone();
        for reign in old {
            let timeout = patience.mul_f64(rng.f64());
            match reign.serializer.finish_shutdown(timeout) {
                Ok(()) => self.finished(reign, rng),
                Err(ShutdownError::TimedOut(_)) => {
                    self.tally().add("shutdowns timed out", 1);
                    if rng.u8(..8) == 0 {
                        let now = self.gpu.now();
                        lock(&reign.log).killed.get_or_insert(now);
                        reign.serializer.release_all();
                    }
                }
                Err(e) => succession.fail(format!("reign {}: {e}", reign.number)),
            }
        }
    }

    /// Its shutdown has said that it has finished.
    fn finished(self: &Arc<Self>, reign: Arc<Reign>, rng: &mut Rng) {
        let succession = self.succession();
        if reign.calls.over.swap(true, SeqCst) {
            // Another thread has seen to it.
            return;
        }
        self.tally().add("shutdowns finished", 1);
        let mut wrong = Vec::new();
        if let Some(record) = succession.records.in_flight(reign.number, u64::MAX) {
            wrong.push(format!("{record:?} is in flight"));
        }
        let live = reign.calls.live.load(SeqCst);
        if live != 0 {
            wrong.push(format!("{live} signals are left"));
        }
        let s = reign.serializer.statistics();
        let log = lock(&reign.log);
        let counted = log.overtaken.len() as u64 == s.overtaken
            && (s.forced >= log.forced.len() as u64)
            && (s.forced == 0 || !log.forced.is_empty() || log.killed.is_some());
        if !counted || s.queues != 0 || s.barriers_live != 0 || s.barriers != s.reclaimed {
            wrong.push(format!("{s:?}, {log:?}"));
        }
        let reports = reign.reports.list();
        wrong.extend(
            reports
                .iter()
                .map(|report| format!("it reported {report}; {log:?}")),
        );
        drop(log);
        for wrong in wrong {
            succession.fail(format!("reign {} has finished: {wrong}", reign.number));
        }
        self.note(&reign);
        succession.forget(&reign);
        // The last handle, most of the time.
        match rng.u8(..3) {
            0 => drop(reign),
            1 => self.on_handler(move |_| drop(reign)),
            _ => {
                let _ = thread::spawn(move || drop(reign)).join();
            }
        }
    }

    /// Adds up what a reign did, and keeps its calls for the end.
    pub(crate) fn note(&self, reign: &Reign) {
        lock(&self.calls).push(reign.calls.clone());
        let s = reign.serializer.statistics();
        for (what, n) in [
            ("transitions", s.transitions),
            ("forced", s.forced),
            ("overtaken", s.overtaken),
            ("superseded", s.superseded),
            ("tags", s.tags),
            ("grants", s.grants),
        ] {
            self.tally().add(what, n);
        }
        self.tally().at_least("most barriers", s.barriers_live_most);
    }
}

/// Waits for that, but not for ever.
fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Result<(), String> {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        if Instant::now() > end {
            return Err(format!("not in time: {what}"));
        }
        thread::sleep(Duration::from_micros(500));
    }
    Ok(())
}

/// Lets all of it happen for so long, then ends it and checks what is left.
pub(crate) fn round(
    seed: u64,
    lasts: Duration,
    tell: impl FnOnce(&Gpu),
    acts: impl FnOnce(&Arc<Round>, Duration),
) -> Result<Tally, String> {
    let mut rng = Rng::with_seed(seed);
    let machine = ThreadedGpu::new(Config {
        handler_threads: rng.usize(1..=2),
        ..Config::seed(seed)
    });
    let gpu = machine.gpu().clone();
    tell(&gpu);
    let domain = if rng.bool() {
        Domain::process()
    } else {
        Domain::new()
    };
    let profiler = Profiler::new(&gpu, gpu.agent(0), |_| {
        Succession::new(&gpu, domain.clone())
    });
    profiler.reserve(2 * IN_FLIGHT);
    let made = (0..QUEUES).map(|_| Round::create_queue(&profiler).expect("a queue"));
    let round = Arc::new(Round {
        queues: made.map(Mutex::new).collect(),
        gpu: gpu.clone(),
        profiler,
        stop: AtomicBool::new(false),
        scarce: rng.u8(..4) == 0,
        next_kernel: AtomicU32::new(0),
        waits: Mutex::default(),
        signals: Mutex::default(),
        on_handlers: AtomicUsize::new(0),
        calls: Mutex::default(),
        left: Mutex::default(),
    });
    let odd = rng.u8(..3) > 0;
    gpu.faults().change(|plan| {
        if odd {
            (plan.handler_twice, plan.handler_late) = (0.02, 0.02);
            plan.handler_after_destroy = 0.2;
            // A while, or until all that it is about may be gone.
            plan.late_by = [300_000, 5_000_000][rng.usize(..2)];
        }
        if round.scarce {
            (plan.create_fails, plan.create_gives_null) = (0.01, 0.01);
        }
    });
    acts(&round, lasts);
    gpu.faults()
        .change(|plan| *plan = softgpu::FaultPlan::default());
    end(&round, &mut rng)?;
    let checked = check(&round, &domain);
    let total = Tally::default();
    total.take(round.tally());
    total.at_least("most signals", gpu.signals().stats().most_live);
    let handlers = gpu.handlers();
    total.add("handler calls", handlers.calls);
    total.add("handler calls, late", handlers.late);
    total.add("handler calls, repeated", handlers.repeated);
    let left = lock(&round.left).take();
    let left = left.map_or(0, |left| left.live.load(SeqCst));
    drop(round);
    machine.finish();
    checked?;
    match gpu.signals().stats().live {
        live if live as i64 == left => Ok(total),
        live => Err(format!("{live} signals are left, not {left}")),
    }
}

/// Brings all that is under way to its end, in one order or another.
fn end(round: &Arc<Round>, rng: &mut Rng) -> Result<(), String> {
    let succession = round.succession();
    let queues_first = rng.bool();
    if !queues_first {
        succession.end_now(if rng.bool() {
            Ending::Close
        } else {
            Ending::Kill
        });
    }
    until("the machine is idle", || {
        round.give_up(true);
        succession
            .living()
            .iter()
            .for_each(|reign| reign.check_stalls());
        let idle = round.gpu.is_idle() && round.profiler.in_flight() == 0;
        idle && round.on_handlers.load(SeqCst) == 0
    })
    .map_err(|e| format!("{e}: {}", round.gpu.describe()))?;
    let destroy = || {
        for place in &round.queues {
            let (queue, _) = &*lock(place);
            round.profiler.destroy_queue(queue).expect("it was there");
        }
    };
    if queues_first {
        destroy();
        if rng.bool() {
            leave(round)?;
        } else {
            succession.end_now(Ending::Close);
        }
    }
    until("all reigns have finished", || {
        round.bury(rng, Duration::from_millis(50));
        lock(&succession.old).is_empty() && round.on_handlers.load(SeqCst) == 0
    })
    .map_err(|e| {
        let left = lock(&succession.old).clone();
        let left = left
            .iter()
            .map(|r| format!("{:?}", r.serializer.try_finish_shutdown()));
        format!("{e}: {:?}", left.collect::<Vec<_>>())
    })?;
    if !queues_first {
        destroy();
    }
    Ok(())
}

/// Leaves the reign of the moment, with whatever signals it has.
fn leave(round: &Arc<Round>) -> Result<(), String> {
    let reign = round.succession().current();
    reign.serializer.leave();
    // Calls that were under way, the removed queues' handlers' among them, end as they would.
    until("handlers are idle", || round.gpu.is_idle())?;
    reign.calls.over.store(true, SeqCst);
    *lock(&round.left) = Some(reign.calls.clone());
    round.tally().add("left", 1);
    Ok(())
}

/// What is left that must not be, and what happened that must not have.
fn check(round: &Arc<Round>, domain: &Domain) -> Result<(), String> {
    let succession = round.succession();
    // The last of all, which has had nothing to do.
    let last = succession.current();
    last.serializer
        .finish_shutdown(PATIENCE)
        .map_err(|e| e.to_string())?;
    round.note(&last);
    drop(last);
    // Somebody has to use the domain for what a pin has held back.
    let pump = Serializer::<crate::runtime::Watched>::builder().domain(domain.clone());
    let idle = crate::runtime::Watched::new(&round.gpu, Default::default(), Arc::default());
    let pump = pump.build(idle);
    until("nothing is deferred", || {
        pump.collect();
        domain.pending() == 0
    })?;
    drop(pump);
    let calls = lock(&round.calls);
    let left = lock(&round.left).clone();
    let of_the_others = |calls: &&Arc<Calls>| !left.iter().any(|left| Arc::ptr_eq(left, calls));
    let others = calls.iter().filter(of_the_others);
    let live: i64 = others.map(|calls| calls.live.load(SeqCst)).sum();
    let late: u64 = calls.iter().map(|calls| calls.late.load(SeqCst)).sum();
    if (live, late, Ticket::lost()) != (0, 0, 0) {
        let lost = Ticket::lost();
        succession.fail(format!(
            "{live} signals, {late} late calls, {lost} lost tickets"
        ));
    }
    for signal in std::mem::take(&mut *lock(&round.signals)) {
        round
            .gpu
            .signals()
            .destroy(signal)
            .expect("it is the application's");
    }
    let (seen, counts) = (
        round.gpu.witness().violations(),
        round.gpu.witness().counts(),
    );
    let losses = counts.overlaps + counts.mode_overlaps + counts.old_after_new;
    round.tally().add("losses seen", losses);
    round
        .tally()
        .at_least("most losses seen in a round", losses);
    if seen.len() as u64 != counts.total() {
        succession.fail(format!("too many losses to judge them: {counts:?}"));
    }
    let wrong = succession
        .records
        .unexplained(&seen, &lock(&succession.logs));
    wrong.into_iter().for_each(|wrong| succession.fail(wrong));
    let failures = lock(&succession.failures);
    if failures.is_empty() {
        return Ok(());
    }
    let first: Vec<_> = failures.iter().take(10).cloned().collect();
    Err(format!(
        "{} failures:\n{}",
        failures.len(),
        first.join("\n")
    ))
}
