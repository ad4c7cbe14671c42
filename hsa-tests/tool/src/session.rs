//! The profiler between the first `hsa_init` and the last `hsa_shut_down`.

use crate::hooks;
use crate::settings::Settings;
use hsa_serializer::Ticket;
use hsa_sys::{Api, TableError, Tables};
use hsa_tests::hsa::Hsa;
use hsa_tests::profiler::Profiler;
use hsa_tests::setup::{Ours, Parts, Setup};
use hsa_tests::witness::Witness;
use serde_json::json;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A profiler, and what turns it on and off.
pub(crate) struct Session {
    pub(crate) profiler: Profiler<Ours>,
    /// The runtime's functions, as they were before ours took their places.
    pub(crate) api: Api,
    settings: Settings,
    /// How many users the runtime has: what `hsa_init` and `hsa_shut_down` count.
    users: AtomicU64,
    stop: AtomicBool,
    toggler: Mutex<Option<JoinHandle<()>>>,
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
        collect: Ours::collect,
        tail: false,
        fault: None,
    });
    let session = Arc::new(Session {
        profiler,
        api,
        settings,
        users: AtomicU64::new(1),
        stop: AtomicBool::new(false),
        toggler: Mutex::new(None),
        ended: Once::new(),
    });
    if let Err(e) = session.profiler.set(true) {
        // No serializer is there yet, so none can refuse.
        eprintln!("hsa_test_tool: {e}");
    }
    if let Some(pause) = session.settings.toggle {
        let toggled = session.clone();
        let thread = thread::spawn(move || toggled.toggle(pause));
        *lock(&session.toggler) = Some(thread);
    }
    *lock(&CURRENT) = Some(session);
    // A program need not shut the runtime down.
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        // SAFETY: the function stays mapped, as this library does. Registered after the runtime's
        // library was loaded, so it runs before that one's own destructors.
        unsafe { libc::atexit(at_exit) };
    });
    hooks::install(&tables)
}

extern "C" fn at_exit() {
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

    /// A user less. Whether it was the last one: then the session has ended, and the runtime may be
    /// shut down.
    pub(crate) fn user_gone(&self) -> bool {
        let last = self.users.fetch_sub(1, SeqCst) == 1;
        if last {
            self.end(false);
            *lock(&CURRENT) = None;
        }
        last
    }

    /// Ends it, whatever is still under way: nothing of ours calls the runtime afterwards. Where no
    /// queue is left, nothing of ours is; else the signals are left to the runtime, as packets may
    /// still refer to them.
    fn end(&self, at_exit: bool) {
        self.ended.call_once(|| {
            self.stop.store(true, SeqCst);
            if let Some(toggler) = lock(&self.toggler).take() {
                toggler.thread().unpark();
                let _ = toggler.join();
            }
            let transitions = self.profiler.transitions();
            let nothing_left = !at_exit && self.profiler.live_queues() == 0;
            if nothing_left {
                // While on, a serializer keeps a signal for turning off.
                if let Err(e) = self.profiler.set(false) {
                    eprintln!("hsa_test_tool: {e}");
                }
            }
            self.profiler.begin_shutdown();
            if nothing_left {
                let (_, left) = self.profiler.finish(Duration::from_secs(1));
                if left.total() != 0 {
                    eprintln!("hsa_test_tool: signals are left: {left:?}");
                }
            }
            if !self.profiler.let_go() {
                eprintln!("hsa_test_tool: somebody still calls the runtime");
            }
            self.summarize(transitions);
        });
    }

    fn summarize(&self, transitions: u64) {
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
            "witness": witness,
        });
        if let Err(e) = fs::write(path, format!("{summary}\n")) {
            eprintln!("hsa_test_tool: {}: {e}", path.display());
        }
    }
}
