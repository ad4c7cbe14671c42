//! A runtime of plain integers, as a C host would give it: handles are given out again last in, first out, as HSA
//! does; it keeps what it was called with, and what it should not have been called with; and it fails on demand.

use hsa_serializer_capi::event::{hsa_serializer_event_t, hsa_serializer_report_t};
use hsa_serializer_capi::ready::hsa_serializer_ready;
use hsa_serializer_capi::runtime::hsa_serializer_runtime_t;
use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::sync::{Mutex, MutexGuard};

/// What the host was called for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    Create(u32, i64),
    Destroy(u64),
    Store(u64, i64),
    CompareExchange(u64, i64, i64),
    Watch(u64, u64),
}

/// How making a signal fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSignal {
    /// With this status.
    Status(u32),
    /// With success and a null handle.
    Null,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) signals: HashMap<u64, i64>,
    free: Vec<u64>,
    pub(crate) called: Vec<Called>,
    /// The ready signals by their queues' ids.
    pub(crate) ready: HashMap<u64, u64>,
    /// Kinds of reports and their texts.
    pub(crate) reports: Vec<(u32, String)>,
    pub(crate) events: Vec<u32>,
    /// How often a callback that is none of the runtime's functions was called.
    pub(crate) told: usize,
    /// After so many signals no more are made.
    pub(crate) no_signal: Option<(usize, NoSignal)>,
    pub(crate) no_watch: Option<u32>,
    pub(crate) no_destroy: Option<u32>,
    pub(crate) is_handler_thread: bool,
    violations: Vec<String>,
}

/// The host. It is never freed, as the serializers that are not ended are not.
#[derive(Debug, Default)]
pub(crate) struct Host(Mutex<State>);

/// All of them, by pointers that a leak checker sees: those that serializers have may have marks in them.
static ALL: Mutex<Vec<&'static Host>> = Mutex::new(Vec::new());

impl Host {
    pub(crate) fn new() -> &'static Self {
        let host = Box::leak(Box::default());
        ALL.lock().unwrap().push(host);
        host
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|failed| failed.into_inner())
    }

    pub(crate) fn userdata(&'static self) -> *mut c_void {
        (&raw const *self).cast_mut().cast()
    }

    pub(crate) fn runtime(&'static self) -> hsa_serializer_runtime_t {
        hsa_serializer_runtime_t {
            size: size_of::<hsa_serializer_runtime_t>(),
            userdata: self.userdata(),
            create_signal: Some(create_signal),
            destroy_signal: Some(destroy_signal),
            store: Some(store),
            compare_exchange: Some(compare_exchange),
            watch_ready: Some(watch_ready),
            is_handler_thread: Some(is_handler_thread),
            report: Some(report),
            event: Some(event),
        }
    }

    /// No more signals after the next `left`.
    pub(crate) fn refuse_signals(&self, left: usize, how: NoSignal) {
        self.state().no_signal = Some((left, how));
    }

    /// Everything is given again.
    pub(crate) fn refuse_nothing(&self) {
        let mut state = self.state();
        (state.no_signal, state.no_watch, state.no_destroy) = (None, None, None);
    }

    /// The packet processor executes the packet that says that the queue has got to its serialized kernel, and the
    /// handler is called.
    pub(crate) fn gets_ready(&self, queue_id: u64) {
        let mut state = self.state();
        let ready = state.ready[&queue_id];
        state.signals.insert(ready, -1);
        drop(state);
        self.call_handlers();
    }

    /// What the runtime's own thread does: calls the handlers of signals that are -1, and forgets those that say so.
    pub(crate) fn call_handlers(&self) {
        let state = self.state();
        let fired = state
            .ready
            .iter()
            .filter(|(_, ready)| state.signals.get(ready) == Some(&-1));
        let fired: Vec<u64> = fired.map(|(id, _)| *id).collect();
        drop(state);
        for id in fired {
            if !hsa_serializer_ready(id) {
                self.state().ready.remove(&id);
            }
        }
    }

    pub(crate) fn signals(&self) -> usize {
        self.state().signals.len()
    }

    pub(crate) fn assert_no_violations(&self) {
        let state = self.state();
        assert!(state.violations.is_empty(), "{:#?}", state.violations);
    }
}

impl State {
    /// The signal's value; that it exists is what is asked of the library.
    fn value(&mut self, signal: u64, what: &str) -> &mut i64 {
        if !self.signals.contains_key(&signal) {
            self.violations
                .push(format!("{what} of {signal}, which does not exist"));
        }
        self.signals.entry(signal).or_default()
    }
}

/// The host that a callback gets.
pub(crate) fn of(userdata: *mut c_void) -> &'static Host {
    // SAFETY: a leaked host, by whoever passed it.
    unsafe { &*userdata.cast::<Host>() }
}

unsafe extern "C" fn create_signal(
    userdata: *mut c_void,
    kind: u32,
    initial: i64,
    signal: *mut u64,
) -> u32 {
    let mut state = of(userdata).state();
    state.called.push(Called::Create(kind, initial));
    let mut handle = 0;
    match &mut state.no_signal {
        Some((0, NoSignal::Status(status))) => return *status,
        Some((0, NoSignal::Null)) => {}
        left => {
            if let Some((left, _)) = left {
                *left -= 1;
            }
            let next = (state.signals.len() + state.free.len() + 1) as u64;
            handle = state.free.pop().unwrap_or(next);
            state.signals.insert(handle, initial);
        }
    }
    // SAFETY: the library gives a place for the handle.
    unsafe { signal.write(handle) };
    0
}

unsafe extern "C" fn destroy_signal(userdata: *mut c_void, signal: u64) -> u32 {
    let mut state = of(userdata).state();
    state.called.push(Called::Destroy(signal));
    if state.signals.remove(&signal).is_none() {
        state.violations.push(format!("{signal} destroyed twice"));
    }
    state.free.push(signal);
    state.no_destroy.unwrap_or(0)
}

unsafe extern "C" fn store(userdata: *mut c_void, signal: u64, value: i64) {
    let mut state = of(userdata).state();
    state.called.push(Called::Store(signal, value));
    *state.value(signal, "store") = value;
}

unsafe extern "C" fn compare_exchange(
    userdata: *mut c_void,
    signal: u64,
    expected: i64,
    desired: i64,
) -> i64 {
    let mut state = of(userdata).state();
    let call = Called::CompareExchange(signal, expected, desired);
    state.called.push(call);
    let value = state.value(signal, "compare-exchange");
    let seen = *value;
    if seen == expected {
        *value = desired;
    }
    seen
}

unsafe extern "C" fn watch_ready(userdata: *mut c_void, ready: u64, queue_id: u64) -> u32 {
    let mut state = of(userdata).state();
    state.called.push(Called::Watch(ready, queue_id));
    if let Some(status) = state.no_watch {
        return status;
    }
    state.ready.insert(queue_id, ready);
    0
}

unsafe extern "C" fn is_handler_thread(userdata: *mut c_void) -> bool {
    of(userdata).state().is_handler_thread
}

unsafe extern "C" fn report(userdata: *mut c_void, report: *const hsa_serializer_report_t) {
    // SAFETY: the report and its text live for the call.
    let (kind, text) = unsafe { ((*report).kind, CStr::from_ptr((*report).text)) };
    let text = text.to_string_lossy().into_owned();
    of(userdata).state().reports.push((kind, text));
}

unsafe extern "C" fn event(userdata: *mut c_void, event: *const hsa_serializer_event_t) {
    // SAFETY: the event lives for the call.
    of(userdata).state().events.push(unsafe { (*event).kind });
}
