//! The profiler between the first `hsa_init` and the last `hsa_shut_down`.

use crate::hooks;
use crate::settings::{End, Settings};
use hsa_serializer::Ticket;
use hsa_sys::{Api, TableError, Tables};
use hsa_tests::hsa::Hsa;
use hsa_tests::profiler::Profiler;
use hsa_tests::setup::{Ours, Parts, Setup};
use hsa_tests::stalls::{self, Found};
use hsa_tests::witness::Witness;
use serde_json::json;
use std::fs;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long a program that shuts the runtime down is held up by what it has left in its queues.
const PATIENCE: Duration = Duration::from_millis(300);

/// A profiler, and what turns it on and off.
pub(crate) struct Session {
    pub(crate) profiler: Profiler<Ours>,
    /// The runtime's functions, as they were before ours took their places.
    pub(crate) api: Api,
    settings: Settings,
    /// How many users the runtime has: what `hsa_init` and `hsa_shut_down` count.
    users: AtomicU64,
    stop: AtomicBool,
    found: Mutex<Found>,
    /// What toggles, and what looks for stalls.
    threads: Mutex<Vec<JoinHandle<()>>>,
    ended: Once,
}

static CURRENT: Mutex<Option<Arc<Session>>> = Mutex::new(None);

/// The session, if there is one.
pub(crate) fn current() -> Option<Arc<Session>> {
    lock(&CURRENT).clone()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a session: the runtime has just been started, for its first user.
pub(crate) fn start(tables: Tables, settings: Settings) -> Result<(), TableError> {
    let api = Api::from_tables(&tables)?;
    let profiler = Profiler::new(Setup {
        // SAFETY: the runtime is initialized; the session ends before it is shut down.
        hsa: unsafe { Hsa::new(api) },
        make: Arc::new(Parts::ours),
        tail: false,
        fault: None,
    });
    let session = Arc::new(Session {
        profiler,
        api,
        settings,
        users: AtomicU64::new(1),
        stop: AtomicBool::new(false),
        found: Mutex::default(),
        threads: Mutex::default(),
        ended: Once::new(),
    });
    if let Err(e) = session.profiler.set(true) {
        // No serializer is there yet, so none can refuse.
        eprintln!("hsa_test_tool: {e}");
    }
    if let Some(pause) = session.settings.toggle {
        let toggled = session.clone();
        let thread = thread::spawn(move || toggled.toggle(pause));
        lock(&session.threads).push(thread);
    }
    if let Some(after) = session.settings.stalls {
        let watched = session.clone();
        let policy = session.settings.policy;
        let thread = thread::spawn(move || {
            let serializers = || watched.profiler.serializers();
            stalls::watch(serializers, after, policy, &watched.stop, &watched.found);
        });
        lock(&session.threads).push(thread);
    }
    if session.settings.end == End::Shutdown {
        // A program need not shut the runtime down.
        static AT_EXIT: Once = Once::new();
        AT_EXIT.call_once(|| {
            PROCESS.store(process::id(), SeqCst);
            // SAFETY: the function stays mapped, as this library does. Registered after the runtime's
            // library was loaded, so it runs before that one's own destructors.
            unsafe { libc::atexit(at_exit) };
        });
    }
    *lock(&CURRENT) = Some(session);
    hooks::install(&tables)
}

/// The process whose end is told of: a child of it has none of its threads, and locks that they held.
static PROCESS: AtomicU32 = AtomicU32::new(0);

extern "C" fn at_exit() {
    if PROCESS.load(SeqCst) != process::id() {
        return;
    }
    if let Some(session) = current() {
        session.end(true);
    }
}

impl Session {
    fn toggle(&self, pause: Duration) {
        let mut on = true;
        while !self.stop.load(SeqCst) {
            thread::park_timeout(pause);
            on = !on;
            if let Err(e) = self.profiler.set(on) {
                // The runtime has no signal left: the mode is as it was, the program goes on.
                eprintln!("hsa_test_tool: {e}");
            }
        }
    }

    /// A user of the runtime more.
    pub(crate) fn user(&self) {
        self.users.fetch_add(1, SeqCst);
    }

    /// A user less. If it was the last one, the session ends: the runtime is about to be shut down.
    pub(crate) fn user_gone(&self) {
        if self.users.fetch_sub(1, SeqCst) != 1 || self.settings.end == End::Nothing {
            return;
        }
        self.end(false);
        *lock(&CURRENT) = None;
    }

    /// Ends it: nothing of ours calls the runtime afterwards. What is under way is waited for, but not
    /// for long, and not at the process's end; what is left then is left to the runtime.
    fn end(&self, at_exit: bool) {
        self.ended.call_once(|| {
            self.stop.store(true, SeqCst);
            for thread in lock(&self.threads).drain(..) {
                thread.thread().unpark();
                let _ = thread.join();
            }
            let (transitions, queues) = (self.profiler.transitions(), self.profiler.live_queues());
            let (forced, overtaken) = self.losses();
            if !at_exit {
                match self.profiler.finish(PATIENCE) {
                    Ok(left) if left.all.total() + left.calls > 0 => {
                        eprintln!("hsa_test_tool: there is something left: {left:?}");
                    }
                    // With queues it is the application that has left work.
                    Err(e) if queues == 0 => eprintln!("hsa_test_tool: {e}"),
                    Ok(_) | Err(_) => {}
                }
            }
            if !self.profiler.let_go() {
                eprintln!("hsa_test_tool: somebody still calls the runtime");
            }
            self.summarize(transitions, forced, overtaken);
        });
    }

    /// Barriers that were cleared by force, and grants that were overtaken.
    fn losses(&self) -> (u64, u64) {
        let serializers = self.profiler.serializers();
        serializers.iter().fold((0, 0), |(forced, overtaken), s| {
            let statistics = s.statistics();
            (forced + statistics.forced, overtaken + statistics.overtaken)
        })
    }

    fn summarize(&self, transitions: u64, forced: u64, overtaken: u64) {
        let Some(path) = &self.settings.summary else {
            return;
        };
        // Of the whole process, if it is an emulated GPU at all.
        let witness = Witness::find().and_then(|w| w.counts()).ok();
        let (kernels, tally) = (self.profiler.kernels(), self.profiler.tally());
        let summary = json!({
            "kernels": kernels.kernels,
            "serialized": kernels.serialized,
            "passed_on": kernels.passed_on,
            "completed": kernels.reported,
            "transitions": transitions,
            "recycled": tally.recycled(),
            "lost_tickets": Ticket::lost(),
            "waited_for_room": kernels.waited_for_room,
            "reports": tally.reports(),
            "stalls": *lock(&self.found),
            "forced": forced,
            "overtaken": overtaken,
            "witness": witness,
        });
        if let Err(e) = fs::write(path, format!("{summary}\n")) {
            eprintln!("hsa_test_tool: {}: {e}", path.display());
        }
    }
}
