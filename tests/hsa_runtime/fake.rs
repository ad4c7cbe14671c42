//! An HSA runtime of C functions over a map: what the tables of a real one would point to.
//!
//! It models what matters to a serializer's runtime: signals with and without an event, the handle
//! that comes back, a handler that is refused on a signal without an event, and refusals. It keeps
//! what it was called with. Nothing executes packets; a test does what a packet processor would.

use hsa_serializer::hsa::hsa_sys::{
    Api, ApiTableVersion, HSA_AGENT_INFO_DEVICE, HSA_AMD_SIGNAL_AMD_GPU_ONLY, HSA_DEVICE_TYPE_GPU,
    HSA_SIGNAL_CONDITION_EQ, HsaApiTable, Tables, functions, hsa_agent_info_t, hsa_agent_t,
    hsa_amd_async_function_callback_t, hsa_amd_signal_handler, hsa_device_type_t,
    hsa_signal_condition_t, hsa_signal_t, hsa_signal_value_t, hsa_status_t,
};
use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard};

/// The agent that it knows.
pub(crate) const AGENT: hsa_agent_t = hsa_agent_t { handle: 0xa6e };

/// How a signal was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Made {
    /// By AMD's function: GPU-only, the agent as its consumer.
    GpuOnly,
    /// By the core function, the agent as its consumer.
    ForAgent,
    /// By the core function, for everybody.
    ForAll,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Handler {
    pub(crate) signal: hsa_signal_t,
    function: hsa_amd_signal_handler,
    /// The pointer that it was registered with, as a number.
    pub(crate) arg: usize,
}

impl Handler {
    /// What HSA's own thread does when the condition holds; whether the handler stays.
    pub(crate) fn call(self) -> bool {
        self.call_with(self.arg)
    }

    pub(crate) fn call_with(self, arg: usize) -> bool {
        // SAFETY: the handler takes any argument at any time: that is what is tested.
        unsafe { (self.function)(-1, ptr::without_provenance_mut(arg)) }
    }
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) signals: HashMap<u64, (hsa_signal_value_t, Made)>,
    /// Destroyed handles, given out again last in, first out.
    free: Vec<u64>,
    /// All handlers that were ever registered: those of destroyed signals stay.
    pub(crate) handlers: Vec<Handler>,
    /// Functions that its thread has to call once.
    pub(crate) functions: Vec<(hsa_amd_async_function_callback_t, usize)>,
    /// How signals were made, those that were refused left out.
    pub(crate) made: Vec<Made>,
    /// What is refused, and with which status.
    pub(crate) refused: HashMap<Made, hsa_status_t>,
    pub(crate) device: Result<hsa_device_type_t, hsa_status_t>,
    pub(crate) destroying: hsa_status_t,
    /// Calls with a signal that does not exist.
    pub(crate) violations: Vec<String>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static ALONE: Mutex<()> = Mutex::new(());

/// The fake, for one test at a time.
pub(crate) struct Hsa(#[expect(dead_code, reason = "holds others off")] MutexGuard<'static, ()>);

impl Hsa {
    pub(crate) fn new() -> Self {
        let alone = ALONE.lock().unwrap_or_else(|failed| failed.into_inner());
        *lock() = Some(State {
            signals: HashMap::new(),
            free: Vec::new(),
            handlers: Vec::new(),
            functions: Vec::new(),
            made: Vec::new(),
            refused: HashMap::new(),
            device: Ok(HSA_DEVICE_TYPE_GPU),
            destroying: hsa_status_t::SUCCESS,
            violations: Vec::new(),
        });
        Self(alone)
    }

    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        with(look)
    }

    pub(crate) fn value(&self, signal: hsa_signal_t) -> hsa_signal_value_t {
        with(|hsa| hsa.signals[&signal.handle].0)
    }

    /// What a packet processor does to a completion signal.
    pub(crate) fn decrement(&self, signal: hsa_signal_t) {
        with(|hsa| hsa.signals.get_mut(&signal.handle).unwrap().0 -= 1);
    }

    /// What HSA's own thread does with the functions that it was given.
    pub(crate) fn call_functions(&self) {
        for (function, arg) in with(|hsa| std::mem::take(&mut hsa.functions)) {
            // SAFETY: with the argument that came with it.
            unsafe { function(ptr::without_provenance_mut(arg)) };
        }
    }

    pub(crate) fn handler(&self, index: usize) -> Handler {
        with(|hsa| hsa.handlers[index])
    }

    /// The functions, taken from tables as a tool takes them.
    pub(crate) fn api(&self) -> Api {
        self.with_table(|root| {
            // SAFETY: the table lives through this.
            let tables = unsafe { Tables::from_raw(root) }.unwrap();
            Api::from_tables(&tables).unwrap()
        })
    }

    /// The table that the runtime gives to a tool, for as long as `look` takes.
    pub(crate) fn with_table<T>(&self, look: impl FnOnce(*const HsaApiTable) -> T) -> T {
        let mut core = table(1016);
        let mut amd_ext = table(400);
        let root = HsaApiTable {
            version: ApiTableVersion {
                major_id: 1,
                minor_id: 48,
                ..Default::default()
            },
            core_: core.as_mut_ptr().cast(),
            amd_ext_: amd_ext.as_mut_ptr().cast(),
            finalizer_ext_: ptr::null_mut(),
            image_ext_: ptr::null_mut(),
        };
        // SAFETY: the tables live to the end of this function, and so does the use of them.
        let tables = unsafe { Tables::from_raw(&root) }.unwrap();
        // SAFETY: each does what the fake promises of the function of its name.
        unsafe {
            tables
                .replace(functions::hsa_agent_get_info, agent_get_info)
                .unwrap();
            tables
                .replace(functions::hsa_status_string, status_string)
                .unwrap();
            tables
                .replace(functions::hsa_signal_create, signal_create)
                .unwrap();
            tables
                .replace(functions::hsa_signal_destroy, signal_destroy)
                .unwrap();
            tables
                .replace(functions::hsa_signal_store_screlease, signal_store)
                .unwrap();
            tables
                .replace(functions::hsa_signal_cas_scacq_screl, signal_cas)
                .unwrap();
            tables
                .replace(functions::hsa_amd_signal_create, amd_signal_create)
                .unwrap();
            tables
                .replace(functions::hsa_amd_signal_async_handler, async_handler)
                .unwrap();
            tables
                .replace(functions::hsa_amd_async_function, async_function)
                .unwrap();
        }
        look(&raw const root)
    }
}

impl Drop for Hsa {
    fn drop(&mut self) {
        let violations = with(|hsa| std::mem::take(&mut hsa.violations));
        if !std::thread::panicking() {
            assert!(violations.is_empty(), "{violations:#?}");
        }
    }
}

fn lock() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(|failed| failed.into_inner())
}

fn with<T>(look: impl FnOnce(&mut State) -> T) -> T {
    look(lock().as_mut().expect("a test is running"))
}

/// A table of that size whose slots all hold a function that nobody should call.
fn table(size: u32) -> Vec<*mut c_void> {
    let slots = (size as usize - size_of::<ApiTableVersion>()) / size_of::<*mut c_void>();
    let version = 1 | u64::from(size) << 32;
    let mut words = vec![
        ptr::without_provenance_mut(version as usize),
        ptr::null_mut(),
    ];
    words.resize(slots + 2, unexpected as *mut c_void);
    words
}

extern "C" fn unexpected() {
    panic!("a function that a serializer's runtime has no use for");
}

impl State {
    fn create(
        &mut self,
        how: Made,
        initial: hsa_signal_value_t,
        signal: *mut hsa_signal_t,
    ) -> hsa_status_t {
        if let Some(status) = self.refused.get(&how) {
            return *status;
        }
        let made = (self.signals.len() + self.free.len() + 1) as u64;
        let handle = self.free.pop().unwrap_or(made);
        self.signals.insert(handle, (initial, how));
        self.made.push(how);
        // SAFETY: the caller gives a place for the handle.
        unsafe { signal.write(hsa_signal_t { handle }) };
        hsa_status_t::SUCCESS
    }

    fn value(&mut self, signal: hsa_signal_t, what: &str) -> Option<&mut hsa_signal_value_t> {
        let found = self.signals.get_mut(&signal.handle);
        if found.is_none() {
            self.violations
                .push(format!("{what} of {signal:?}, which does not exist"));
        }
        found.map(|(value, _)| value)
    }
}

unsafe extern "C" fn agent_get_info(
    agent: hsa_agent_t,
    attribute: hsa_agent_info_t,
    value: *mut c_void,
) -> hsa_status_t {
    if agent != AGENT || attribute != HSA_AGENT_INFO_DEVICE {
        return hsa_status_t::ERROR_INVALID_AGENT;
    }
    match with(|hsa| hsa.device) {
        Ok(device) => {
            // SAFETY: this attribute is a device type.
            unsafe { value.cast::<hsa_device_type_t>().write(device) };
            hsa_status_t::SUCCESS
        }
        Err(status) => status,
    }
}

unsafe extern "C" fn status_string(
    status: hsa_status_t,
    string: *mut *const c_char,
) -> hsa_status_t {
    let (answer, text) = match status.0 {
        0x2001 => (hsa_status_t::SUCCESS, c"the coffee is cold".as_ptr()),
        0x2002 => (hsa_status_t::SUCCESS, std::ptr::null()),
        _ => (hsa_status_t::ERROR_INVALID_ARGUMENT, c"a leftover".as_ptr()),
    };
    // SAFETY: the caller gives a place for the pointer.
    unsafe { string.write(text) };
    answer
}

/// Whose consumers are named.
fn consumers(count: u32, consumers: *const hsa_agent_t) -> Vec<hsa_agent_t> {
    // SAFETY: as many agents as are said follow.
    (0..count as usize)
        .map(|i| unsafe { *consumers.add(i) })
        .collect()
}

unsafe extern "C" fn signal_create(
    initial: hsa_signal_value_t,
    num_consumers: u32,
    agents: *const hsa_agent_t,
    signal: *mut hsa_signal_t,
) -> hsa_status_t {
    let how = match consumers(num_consumers, agents).as_slice() {
        [] => Made::ForAll,
        [AGENT] => Made::ForAgent,
        _ => return hsa_status_t::ERROR_INVALID_AGENT,
    };
    with(|hsa| hsa.create(how, initial, signal))
}

unsafe extern "C" fn amd_signal_create(
    initial: hsa_signal_value_t,
    num_consumers: u32,
    agents: *const hsa_agent_t,
    attributes: u64,
    signal: *mut hsa_signal_t,
) -> hsa_status_t {
    let gpu_only = attributes == HSA_AMD_SIGNAL_AMD_GPU_ONLY.0;
    if !gpu_only || consumers(num_consumers, agents) != [AGENT] {
        return hsa_status_t::ERROR_INVALID_ARGUMENT;
    }
    with(|hsa| hsa.create(Made::GpuOnly, initial, signal))
}

unsafe extern "C" fn signal_destroy(signal: hsa_signal_t) -> hsa_status_t {
    with(|hsa| {
        if hsa.value(signal, "destruction").is_none() {
            return hsa_status_t::ERROR_INVALID_SIGNAL;
        }
        hsa.signals.remove(&signal.handle);
        hsa.free.push(signal.handle);
        hsa.destroying
    })
}

unsafe extern "C" fn signal_store(signal: hsa_signal_t, value: hsa_signal_value_t) {
    with(|hsa| {
        if let Some(v) = hsa.value(signal, "store") {
            *v = value;
        }
    });
}

unsafe extern "C" fn signal_cas(
    signal: hsa_signal_t,
    expected: hsa_signal_value_t,
    value: hsa_signal_value_t,
) -> hsa_signal_value_t {
    with(|hsa| {
        let Some(v) = hsa.value(signal, "compare-exchange") else {
            return hsa_signal_value_t::MIN;
        };
        let seen = *v;
        if seen == expected {
            *v = value;
        }
        seen
    })
}

unsafe extern "C" fn async_handler(
    signal: hsa_signal_t,
    condition: hsa_signal_condition_t,
    value: hsa_signal_value_t,
    function: hsa_amd_signal_handler,
    arg: *mut c_void,
) -> hsa_status_t {
    with(|hsa| {
        let Some((_, how)) = hsa.signals.get(&signal.handle) else {
            return hsa_status_t::ERROR_INVALID_SIGNAL;
        };
        // A signal without an event takes no handler.
        if *how != Made::ForAll {
            return hsa_status_t::ERROR_INVALID_SIGNAL;
        }
        if (condition, value) != (HSA_SIGNAL_CONDITION_EQ, -1) {
            return hsa_status_t::ERROR_INVALID_ARGUMENT;
        }
        hsa.handlers.push(Handler {
            signal,
            function,
            arg: arg.addr(),
        });
        hsa_status_t::SUCCESS
    })
}

unsafe extern "C" fn async_function(
    function: hsa_amd_async_function_callback_t,
    arg: *mut c_void,
) -> hsa_status_t {
    with(|hsa| hsa.functions.push((function, arg.addr())));
    hsa_status_t::SUCCESS
}
