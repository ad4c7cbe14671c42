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
use std::sync::{Arc, Mutex, Once};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long a program that shuts the runtime down is held up by what it has left in its queues.
const PATIENCE: Duration = Duration::from_millis(300);

pub(crate) struct Session {
    pub(crate) profiler: Arc<Profiler>,
    /// The runtime's functions, as they were before ours took their places.
    pub(crate) api: Api,
    stop: AtomicBool,
    /// A thread of ours that pauses and resumes.
    toggler: Mutex<Option<JoinHandle<()>>>,
    /// One that looks for stalls.
    watcher: Mutex<Option<JoinHandle<()>>>,
    /// Its figures are in the summary.
    reported: Once,
}

/// Looked at without a lock, by all that replaces functions of the runtime's. The end of the process does not look at
/// it, since that may touch a thread's locals, which are allocated then.
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
        toggler: Mutex::default(),
        watcher: Mutex::default(),
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
    hsa.find_handlers_thread();
    if let Some(pause) = settings.toggle {
        *lock(&session.toggler) = session.spawn(move |session| session.toggle(pause));
    }
    if let Some(after) = settings.stall {
        *lock(&session.watcher) = session.spawn(move |session| {
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

/// The process ends, perhaps with the runtime running, and the application's own functions may still use it.
pub(crate) fn last_words() {
    let session = current();
    if let Some(session) = &session {
        session.report(|| session.profiler.so_far());
    }
    summary::print();
    if let Some(session) = session {
        // Who switches uses more of the runtime than goes well beside its destructors.
        join(&session.toggler);
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
    fn spawn(self: &Arc<Self>, run: impl FnOnce(&Self) + Send + 'static) -> Option<JoinHandle<()>> {
        let session = self.clone();
        signals::deaf_thread(move || run(&session))
    }

    fn report(&self, figures: impl FnOnce() -> Figures) {
        self.reported.call_once(|| summary::add(&figures()));
    }

    fn toggle(&self, pause: Duration) {
        let mut on = true;
        loop {
            thread::park_timeout(pause);
            if self.stop.load(SeqCst) || process::ends() {
                return;
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
        join(&self.toggler);
        join(&self.watcher);
        let figures = self.profiler.end(PATIENCE);
        self.report(|| figures);
    }
}

/// Wakes a thread that has been told to stop, and waits until it has.
fn join(thread: &Mutex<Option<JoinHandle<()>>>) {
    let thread = lock(thread).take();
    if let Some(thread) = thread {
        thread.thread().unpark();
        let _ = thread.join();
    }
}
