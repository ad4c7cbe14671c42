//! The tool between an `hsa_init` that starts the runtime and the `hsa_shut_down` that stops it.

use crate::hsa::Hsa;
use crate::profiler::Profiler;
use crate::settings::{Settings, Wanted};
use crate::summary::{self, Figures};
use crate::trace::Trace;
use crate::{hooks, lock, process, signals, stalls, switch};
use arc_swap::ArcSwapOption;
use hsa_sys::{Api, Tables, hsa_agent_t};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, Once, OnceLock};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// How long a program that shuts the runtime down is held up by what it has left in its queues.
const PATIENCE: Duration = Duration::from_millis(300);

/// How long the end of the process is held up, at most, by the wish to say how it went.
const LAST_WORDS: Duration = Duration::from_secs(1);

pub(crate) struct Session {
    pub(crate) profiler: Arc<Profiler>,
    /// The runtime's functions, as they were before ours took their places.
    pub(crate) api: Api,
    stop: AtomicBool,
    /// The process ends.
    exiting: AtomicBool,
    /// A thread of ours pauses and resumes.
    toggling: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Who waits for that.
    waits_for_exit: OnceLock<Thread>,
    /// Its figures are in the summary.
    reported: Once,
}

/// Looked at without a lock: by a child of `fork`, and by a signal handler that ends the process.
static CURRENT: ArcSwapOption<Session> = ArcSwapOption::const_empty();

/// The session, if there is one.
pub(crate) fn current() -> Option<Arc<Session>> {
    CURRENT.load_full()
}

pub(crate) fn set_current(session: Option<Arc<Session>>) {
    CURRENT.store(session);
}

/// The runtime has just been started, for its first user.
pub(crate) fn start(tables: &Tables, settings: Settings) -> Result<(), String> {
    let api = Api::from_tables(tables).map_err(|e| e.to_string())?;
    // SAFETY: the runtime is initialized; whoever calls it enters the gate, which is closed before the
    // runtime is shut down.
    let hsa = unsafe { Hsa::new(api) };
    let gpus = wanted(&settings.agents, hsa.gpus().map_err(|e| e.to_string())?)?;
    let profiler = Profiler::new(hsa, &gpus, trace(&settings)?);
    let session = Arc::new(Session {
        profiler,
        api,
        stop: AtomicBool::new(false),
        exiting: AtomicBool::new(false),
        toggling: AtomicBool::new(settings.toggle.is_some()),
        waits_for_exit: OnceLock::new(),
        threads: Mutex::default(),
        reported: Once::new(),
    });
    summary::begin(settings.quiet, session.profiler.trace.path());
    process::watch();
    switch::install(session.clone(), !settings.paused)?;
    // SAFETY: this library stays mapped.
    if let Err(e) = unsafe { hooks::install(tables) } {
        set_current(None);
        return Err(e.to_string());
    }
    session.spawn(Session::wait_for_exit);
    if let Some(pause) = settings.toggle {
        session.spawn(move |session| session.toggle(pause));
    }
    if let Some(after) = settings.stall {
        session.spawn(move |session| {
            stalls::watch(&session.profiler, after, settings.policy, &session.stop);
        });
    }
    Ok(())
}

/// The GPUs that the user wants.
fn wanted(wanted: &Wanted, all: Vec<hsa_agent_t>) -> Result<Vec<hsa_agent_t>, String> {
    let Wanted::Some(numbers) = wanted else {
        return Ok(all);
    };
    let find = |&number: &usize| {
        let gpu = all.get(number).copied();
        gpu.ok_or_else(|| {
            format!(
                "HSA_SERIALIZER_AGENTS: there is no GPU {number}; there are {}",
                all.len()
            )
        })
    };
    let mut gpus = Vec::new();
    for number in numbers {
        let gpu = find(number)?;
        // One that is named twice is one.
        if !gpus.contains(&gpu) {
            gpus.push(gpu);
        }
    }
    Ok(gpus)
}

/// The trace: one for all rounds of a process.
fn trace(settings: &Settings) -> Result<Arc<Trace>, String> {
    static TRACE: Mutex<Option<Arc<Trace>>> = Mutex::new(None);
    let mut trace = lock(&TRACE);
    if let Some(trace) = &*trace {
        return Ok(trace.clone());
    }
    let output = &settings.output;
    let made = Trace::create(output)
        .map_err(|e| format!("HSA_SERIALIZER_OUTPUT={}: {e}", output.display()))?;
    Ok(trace.insert(Arc::new(made)).clone())
}

/// The process ends, with the runtime running, and the application's own functions may still use it. A signal
/// handler may have called `exit`, in the middle of anything, on any thread but ours: so all that takes a lock, or
/// memory, is left to a thread of ours, and is not waited for without end.
pub(crate) fn at_exit() {
    let Some(session) = current() else { return };
    session.exiting.store(true, SeqCst);
    let deadline = Instant::now() + LAST_WORDS;
    // Who switches uses more of the runtime than goes well beside its destructors.
    let done = || session.reported.is_completed() && !session.toggling.load(SeqCst);
    while !done() && Instant::now() < deadline {
        // Each time, for it may just have been started.
        if let Some(thread) = session.waits_for_exit.get() {
            thread.unpark();
        }
        thread::sleep(Duration::from_micros(200));
    }
}

/// The runtime is about to be shut down.
pub(crate) fn end() {
    if let Some(session) = current() {
        session.end();
        set_current(None);
    }
}

impl Session {
    fn spawn(self: &Arc<Self>, run: impl FnOnce(&Self) + Send + 'static) {
        let session = self.clone();
        let thread = thread::Builder::new().name("hsa-serializer".into());
        match signals::blocked(|| thread.spawn(move || run(&session))) {
            Ok(thread) => lock(&self.threads).push(thread),
            Err(e) => say!("a thread can't be started: {e}"),
        }
    }

    /// Says how it went when the process ends.
    fn wait_for_exit(&self) {
        let _ = self.waits_for_exit.set(thread::current());
        while !self.stop.load(SeqCst) {
            if self.exiting.load(SeqCst) {
                return self.report(|| self.profiler.so_far());
            }
            thread::park();
        }
    }

    fn report(&self, figures: impl FnOnce() -> Figures) {
        self.reported.call_once(|| summary::add(&figures()));
    }

    fn toggle(&self, pause: Duration) {
        let mut on = true;
        loop {
            thread::park_timeout(pause);
            if self.stop.load(SeqCst) || self.exiting.load(SeqCst) {
                return self.toggling.store(false, SeqCst);
            }
            on = !on;
            if let Err(e) = switch::set(on) {
                // The runtime has no signal left: the mode is as it was, the program goes on.
                say!("{e}");
            }
        }
    }

    /// Ends it: nothing of ours calls the runtime afterwards. What is under way is waited for, but not for
    /// long.
    fn end(&self) {
        self.stop.store(true, SeqCst);
        // They call the runtime: first of all they stop.
        for thread in lock(&self.threads).drain(..) {
            thread.thread().unpark();
            let _ = thread.join();
        }
        let figures = self.profiler.end(PATIENCE);
        self.report(|| figures);
    }
}
