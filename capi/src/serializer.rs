//! Serializers: made, turned on and off, and destroyed.

use crate::directory::Directory;
use crate::domain::{self, hsa_serializer_domain_t};
use crate::event::mode_number;
use crate::fence;
use crate::handle::hsa_serializer_t;
use crate::objects::Objects;
use crate::runtime::{CRuntime, hsa_serializer_hsa_t, hsa_serializer_runtime_t, read_sized};
use crate::status::{
    HSA_SERIALIZER_BAD_VALUE, HSA_SERIALIZER_FOREIGN_HANDLE, HSA_SERIALIZER_FULL,
    HSA_SERIALIZER_NOT_FINISHED, HSA_SERIALIZER_NULL_POINTER, HSA_SERIALIZER_STALE_HANDLE, Outcome,
    hsa_serializer_status_t, status,
};
use hsa_serializer::{Builder, OnMisuse, Serializer, Transition};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A serializer, and what became of it. It stays when it is destroyed: a completion may be on its way out
/// of it on another thread, which nothing tells.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Entry {
    serializer: OnceLock<Serializer<CRuntime>>,
    destroyed: AtomicBool,
    /// Nothing of it calls the runtime any more.
    ended: AtomicBool,
    /// It is one of agents, and goes with them.
    of_agents: AtomicBool,
}

impl Entry {
    const fn new() -> Self {
        Self {
            serializer: OnceLock::new(),
            destroyed: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            of_agents: AtomicBool::new(false),
        }
    }

    pub(crate) fn ended(&self) {
        // Release: for who destroys it.
        self.ended.store(true, Ordering::Release);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Says that its handle is stale from now on; whether this call did.
    pub(crate) fn destroy(&self) -> bool {
        !self.destroyed.swap(true, Ordering::AcqRel)
    }
}

/// How many have an entry that needs no memory.
const FIRST: usize = 64;

static SERIALIZERS: Directory<Entry, FIRST> = Directory::new([const { Entry::new() }; FIRST]);

/// The entries by the numbers that the serializers have themselves, for those that are alive.
static BY_SERIALIZER: Objects<u64> = Objects::new();

/// Gives the serializer a handle.
pub(crate) fn enter(serializer: Serializer<CRuntime>) -> Outcome<u64> {
    let (number, entry) = SERIALIZERS.give().ok_or(HSA_SERIALIZER_FULL)?;
    let own = serializer.number();
    // It was given to us alone.
    let _ = entry.serializer.set(serializer);
    BY_SERIALIZER.keep_as(own.into(), number);
    Ok(number)
}

/// Takes it from where handlers look.
pub(crate) fn forget(serializer: &Serializer<CRuntime>) {
    let _ = BY_SERIALIZER.take(serializer.number().into());
}

/// The serializer of that number of its own, while it is alive.
pub(crate) fn by_own_number(own: u32) -> Option<&'static Serializer<CRuntime>> {
    kept(*BY_SERIALIZER.find(own.into()).ok()?)
}

/// Says that the serializer of that entry is one of agents.
pub(crate) fn is_of_agents(number: u64) {
    if let Some(entry) = SERIALIZERS.get(number) {
        entry.of_agents.store(true, Ordering::Relaxed);
    }
}

/// Takes a handle away that nobody has got, of a serializer that has another.
pub(crate) fn never_mind(number: u64) {
    if let Some(entry) = SERIALIZERS.get(number) {
        entry.destroy();
    }
}

/// Takes the handle of a serializer that has ended away.
pub(crate) fn give_up(number: u64) {
    never_mind(number);
    if let Some(serializer) = kept(number) {
        forget(serializer);
    }
}

/// Whether nothing of the serializer of that entry calls the runtime any more.
pub(crate) fn has_ended(number: u64) -> bool {
    SERIALIZERS.get(number).is_some_and(Entry::has_ended)
}

/// The serializer of that entry, destroyed or not.
pub(crate) fn kept(number: u64) -> Option<&'static Serializer<CRuntime>> {
    SERIALIZERS.get(number)?.serializer.get()
}

#[inline(always)]
pub(crate) fn entry(number: u64) -> Outcome<(&'static Entry, &'static Serializer<CRuntime>)> {
    let Some(entry) = SERIALIZERS.get(number) else {
        return Err(HSA_SERIALIZER_FOREIGN_HANDLE);
    };
    let Some(serializer) = entry.serializer.get() else {
        return Err(HSA_SERIALIZER_FOREIGN_HANDLE);
    };
    // Relaxed: who was told of the end sees it; for anybody else it may come a moment later.
    if entry.destroyed.load(Ordering::Relaxed) {
        return Err(HSA_SERIALIZER_STALE_HANDLE);
    }
    Ok((entry, serializer))
}

/// The serializer of that number, if its entry's address is computed and its handle not stale.
#[inline(always)]
#[cfg(not(feature = "checked"))]
pub(crate) fn find_first(number: u64) -> Option<&'static Serializer<CRuntime>> {
    let entry = SERIALIZERS.get_first(number)?;
    // Relaxed: as in `entry`.
    if entry.destroyed.load(Ordering::Relaxed) {
        return None;
    }
    entry.serializer.get()
}

#[inline(always)]
pub(crate) fn find(handle: hsa_serializer_t) -> Outcome<&'static Serializer<CRuntime>> {
    Ok(entry(handle.number()?)?.1)
}

/// An output that may not be null.
///
/// # Safety
/// `out` is null, or can be written.
#[inline(always)]
pub(crate) unsafe fn output<T>(out: *mut T) -> Outcome<Output<T>> {
    NonNull::new(out)
        .map(Output)
        .ok_or(HSA_SERIALIZER_NULL_POINTER)
}

/// Where a result goes.
pub(crate) struct Output<T>(NonNull<T>);

impl<T> Output<T> {
    #[inline(always)]
    pub(crate) fn write(self, value: T) {
        // SAFETY: the promise of `output`. C does not align what it points to with more care than Rust asks for,
        // but a packed structure's field is cheap to allow.
        unsafe { self.0.as_ptr().write_unaligned(value) }
    }
}

/// What follows from misuse that is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum hsa_serializer_on_misuse_t {
    /// Everything is let through, as by hsa_serializer_release_all(), and reported.
    HSA_SERIALIZER_ON_MISUSE_RELEASE = 0,
    /// It is reported.
    HSA_SERIALIZER_ON_MISUSE_GO_ON = 1,
}

/// How a serializer is made where the defaults do not do.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_options_t {
    /// `sizeof(hsa_serializer_options_t)`.
    pub size: usize,
    /// Reclamation in this domain; null: in the process's.
    pub domain: hsa_serializer_domain_t,
    /// The agent's handle, for snapshots to name it; 0: not said.
    pub agent: u64,
    /// One of hsa_serializer_on_misuse_t.
    pub on_misuse: u32,
}

/// # Safety
/// `options` is null, or points to what hsa_serializer_options_t describes.
pub(crate) unsafe fn builder(options: *const hsa_serializer_options_t) -> Outcome<Builder> {
    let builder = Builder::default();
    if options.is_null() {
        return Ok(builder);
    }
    // SAFETY: the caller's promise.
    let given = unsafe { read_sized(options, size_of::<hsa_serializer_options_t>()) }?;
    let mut builder = builder.on_misuse(match given.on_misuse {
        0 => OnMisuse::Release,
        1 => OnMisuse::GoOn,
        _ => return Err(HSA_SERIALIZER_BAD_VALUE),
    });
    if given.domain.handle != 0 {
        builder = builder.domain(domain::find(given.domain)?);
    }
    if given.agent != 0 {
        builder = builder.agent(given.agent);
    }
    Ok(builder)
}

/// Makes a serializer, disabled, over functions of the host's. `options` may be null. Nothing of the
/// runtime is called.
///
/// From any thread. The functions and what `userdata` points to are used until
/// hsa_serializer_finish_shutdown() has come to `HSA_SERIALIZER_SUCCESS` or hsa_serializer_leave() was called.
///
/// `HSA_SERIALIZER_NULL_POINTER` (also for a function that is missing), `HSA_SERIALIZER_BAD_SIZE`,
/// `HSA_SERIALIZER_BAD_VALUE`, `HSA_SERIALIZER_FULL`; of the domain: `HSA_SERIALIZER_FOREIGN_HANDLE`,
/// `HSA_SERIALIZER_STALE_HANDLE`.
///
/// # Safety
/// As said in the header: of pointers that are not null, each points to what its type says, and outputs
/// can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_create(
    options: *const hsa_serializer_options_t,
    runtime: *const hsa_serializer_runtime_t,
    serializer: *mut hsa_serializer_t,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let (out, builder, runtime) = unsafe {
            (
                output(serializer)?,
                builder(options)?,
                CRuntime::of_host(runtime)?,
            )
        };
        out.write(make(builder, runtime)?);
        Ok(())
    })
}

/// Makes a serializer, disabled, for one agent of AMD's runtime, by the runtime's table. `options` may be
/// null. Handlers are registered by this library: nobody has to call hsa_serializer_ready().
///
/// In the tool's `OnLoad`, or later with a copy of the table as it was then; HSA is initialized, `agent` is the
/// handle of one of its GPUs, and HSA is shut down only after hsa_serializer_finish_shutdown() has come to
/// `HSA_SERIALIZER_SUCCESS` or hsa_serializer_leave() was called.
///
/// As hsa_serializer_create(); `HSA_SERIALIZER_BAD_TABLE`, `HSA_SERIALIZER_NOT_A_GPU`,
/// `HSA_SERIALIZER_BAD_AGENT`.
///
/// # Safety
/// As said in the header, and the table is the runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_create_hsa(
    options: *const hsa_serializer_options_t,
    hsa: *const hsa_serializer_hsa_t,
    agent: u64,
    serializer: *mut hsa_serializer_t,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let (out, builder, runtime) = unsafe {
            (
                output(serializer)?,
                builder(options)?,
                CRuntime::of_table(hsa, agent)?,
            )
        };
        out.write(make(builder.agent(agent), runtime)?);
        Ok(())
    })
}

fn make(builder: Builder, runtime: CRuntime) -> Outcome<hsa_serializer_t> {
    fence::ready();
    Ok(hsa_serializer_t::new(enter(builder.build(runtime))?))
}

/// Gives the handle up. The serializer has to have ended: hsa_serializer_finish_shutdown() (or try_) has come
/// to `HSA_SERIALIZER_SUCCESS`, or hsa_serializer_leave() was called. Handles of its queues, cuts, requests and
/// watches stay what they are, and have still to be given up. Serializers of agents go with these, by
/// hsa_serializer_agents_destroy().
///
/// From any thread, once; other threads may be inside of calls with this handle, which end as they would.
/// Some 30 KiB stay in memory for each serializer that was destroyed.
///
/// `HSA_SERIALIZER_NOT_FINISHED`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`,
/// `HSA_SERIALIZER_STALE_HANDLE`.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_destroy(serializer: hsa_serializer_t) -> hsa_serializer_status_t {
    status(|| {
        let (entry, serializer) = entry(serializer.number()?)?;
        // Relaxed: who has the handle of an agent's serializer got it after that was said.
        if !entry.has_ended() || entry.of_agents.load(Ordering::Relaxed) {
            return Err(HSA_SERIALIZER_NOT_FINISHED);
        }
        if !entry.destroy() {
            return Err(HSA_SERIALIZER_STALE_HANDLE);
        }
        forget(serializer);
        Ok(())
    })
}

/// What a transition did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum hsa_serializer_change_t {
    /// The mode was that one already.
    HSA_SERIALIZER_UNCHANGED = 0,
    /// The mode has changed; `count` queues had dispatches in flight, for which kernels now wait.
    HSA_SERIALIZER_CHANGED = 1,
    /// It was switched off, but `count` requests keep kernels serialized.
    HSA_SERIALIZER_KEPT = 2,
}

/// What a transition did, and a number that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_transition_t {
    /// One of hsa_serializer_change_t.
    pub change: u32,
    /// See there.
    pub count: u64,
}

/// # Safety
/// `out` is null, or can be written.
pub(crate) unsafe fn tell_transition(out: *mut hsa_serializer_transition_t, did: Transition) {
    use hsa_serializer_change_t::*;
    let (change, count) = match did {
        Transition::Changed { waiting_for } => (HSA_SERIALIZER_CHANGED, waiting_for as u64),
        Transition::Kept { requests } => (HSA_SERIALIZER_KEPT, requests),
        _ => (HSA_SERIALIZER_UNCHANGED, 0),
    };
    let change = change as u32;
    // SAFETY: the caller's promise.
    if let Ok(out) = unsafe { output(out) } {
        out.write(hsa_serializer_transition_t { change, count });
    }
}

/// The mode in which a dispatch begun now would run.
///
/// Wait-free; from anywhere, also in callbacks, signal handlers and the child of a fork.
///
/// `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`,
/// `HSA_SERIALIZER_STALE_HANDLE`.
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_mode(
    serializer: hsa_serializer_t,
    mode: *mut u32,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { output(mode) }?;
        out.write(mode_number(find(serializer)?.mode()));
        Ok(())
    })
}

/// Serializes from now on: every dispatch begun after this returns runs alone. The host's own switch, beside
/// requests: the last word counts. It does not wait. `transition` may be null.
///
/// Takes the transition lock: not in callbacks, and in an interceptor only if no thread that is inside of such
/// a call can wait for its queue's lock.
///
/// `HSA_SERIALIZER_NO_SIGNAL`, `HSA_SERIALIZER_NULL_SIGNAL`, `HSA_SERIALIZER_LEFT`,
/// `HSA_SERIALIZER_SHUT_DOWN` (always so in the child of a fork); the handle's, as hsa_serializer_mode().
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_enable(
    serializer: hsa_serializer_t,
    transition: *mut hsa_serializer_transition_t,
) -> hsa_serializer_status_t {
    status(|| {
        let did = find(serializer)?.enable()?;
        // SAFETY: the caller's promise.
        unsafe { tell_transition(transition, did) };
        Ok(())
    })
}

/// Lets kernels run as the application wrote them, from now on, unless somebody requests serializing. It does
/// not wait. `transition` may be null.
///
/// From where hsa_serializer_enable() may be called.
///
/// `HSA_SERIALIZER_SHUT_DOWN`; the handle's, as hsa_serializer_mode().
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_disable(
    serializer: hsa_serializer_t,
    transition: *mut hsa_serializer_transition_t,
) -> hsa_serializer_status_t {
    status(|| {
        let did = find(serializer)?.disable()?;
        // SAFETY: the caller's promise.
        unsafe { tell_transition(transition, did) };
        Ok(())
    })
}

/// Runs deferred reclamation, as far as no thread holds it back, and delivers reports. Everything that is slow
/// does it by itself; this is for a host that has an idle moment.
///
/// Lock-free; from any thread, but not in callbacks.
///
/// The handle's, as hsa_serializer_mode().
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_collect(serializer: hsa_serializer_t) -> hsa_serializer_status_t {
    status(|| {
        find(serializer)?.collect();
        Ok(())
    })
}
