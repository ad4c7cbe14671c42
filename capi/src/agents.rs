//! The agents of a process: one serializer for each, made when somebody first asks for it.

use crate::fence;
use crate::handle::{hsa_serializer_agents_t, hsa_serializer_request_t, hsa_serializer_t};
use crate::objects::Objects;
use crate::request::{self, Guard};
use crate::runtime::{CRuntime, Table, hsa_serializer_hsa_t, hsa_serializer_runtime_t};
use crate::serializer::{self, builder, hsa_serializer_options_t, output};
use crate::status::{
    HSA_SERIALIZER_BAD_AGENT, HSA_SERIALIZER_NOT_FINISHED, HSA_SERIALIZER_NULL_POINTER,
    HSA_SERIALIZER_UNTOUCHED, Outcome, hsa_serializer_status_t, runtime_said, status,
};
use crate::waiting::list;
use hsa_serializer::{Agents, Builder};
use std::ffi::c_void;
use std::mem::MaybeUninit;

/// Makes the runtime of an agent: writes it to `runtime`, and returns 0; or returns an `hsa_status_t`, and
/// hsa_serializer_agents_of() comes to `HSA_SERIALIZER_BAD_AGENT`. It may be called more than once for one agent,
/// where several threads touch that for the first time; all but one of the runtimes are never used.
#[allow(non_camel_case_types, reason = "the names are C's")]
pub type hsa_serializer_make_fn = Option<
    unsafe extern "C" fn(
        userdata: *mut c_void,
        agent: u64,
        runtime: *mut hsa_serializer_runtime_t,
    ) -> u32,
>;

enum Maker {
    Host {
        make: unsafe extern "C" fn(*mut c_void, u64, *mut hsa_serializer_runtime_t) -> u32,
        userdata: *mut c_void,
    },
    Hsa(Box<Table>),
}

// SAFETY: the host promises that its function may be called by any thread, with `userdata`
// (hsa_serializer_agents_create).
unsafe impl Send for Maker {}
// SAFETY: as above.
unsafe impl Sync for Maker {}

impl Maker {
    fn make(&self, agent: u64) -> Outcome<CRuntime> {
        match self {
            Self::Hsa(table) => table.runtime(agent),
            Self::Host { make, userdata } => {
                let mut runtime = MaybeUninit::<hsa_serializer_runtime_t>::zeroed();
                // SAFETY: the host's promise; `runtime` lives through the call.
                let refused = unsafe { make(*userdata, agent, runtime.as_mut_ptr()) };
                if refused != 0 {
                    runtime_said(refused);
                    return Err(HSA_SERIALIZER_BAD_AGENT);
                }
                // SAFETY: it was written, or is zero, which is refused.
                unsafe { CRuntime::of_host(runtime.as_ptr()) }
            }
        }
    }
}

struct Group {
    agents: Agents<CRuntime>,
    builder: Builder,
    maker: Maker,
    /// The numbers of the serializers' entries, by agent.
    entries: Objects<u64>,
}

static GROUPS: Objects<Group> = Objects::new();

impl Group {
    fn new(builder: Builder, maker: Maker) -> Self {
        Self {
            // Making can fail, so agents are touched by `of` below alone, which brings what was made.
            agents: Agents::new(|_| unreachable!("agents are touched with what was made for them")),
            builder,
            maker,
            entries: Objects::new(),
        }
    }

    fn of(&self, agent: u64) -> Outcome<hsa_serializer_t> {
        if let Ok(entry) = self.entries.find(agent) {
            self.agents.of(agent)?;
            return Ok(hsa_serializer_t::new(*entry));
        }
        let runtime = self.maker.make(agent)?;
        let builder = self.builder.clone().agent(agent);
        let serializer = self.agents.of_with(agent, || builder.build(runtime))?;
        let number = serializer::enter(serializer.clone())?;
        serializer::is_of_agents(number);
        let first = self.entries.keep_first(agent, number);
        if *first != number {
            // Somebody else was first, by whose handle it goes.
            serializer::never_mind(number);
        }
        Ok(hsa_serializer_t::new(*first))
    }

    /// Ends the serializers of agents that got no signal when they were touched: no handle was given for them, and a
    /// request of all, which may outlive the group, has them all the same. Whether that was possible: they have no
    /// queues, so nothing but a call of another thread's holds it up.
    fn end_what_nobody_has(&self) -> bool {
        self.agents.iter().all(|(agent, serializer)| {
            self.entries.find(agent).is_ok() || serializer.try_finish_shutdown().is_ok()
        })
    }
}

fn keep(builder: Builder, maker: Maker) -> hsa_serializer_agents_t {
    fence::ready();
    hsa_serializer_agents_t::new(GROUPS.keep(Group::new(builder, maker)))
}

/// No agents yet; each gets a serializer when it is first touched, over a runtime that `make` makes. `options` may
/// be null; what they say of an agent is not used.
///
/// From any thread, but not in callbacks. `make` may be called until hsa_serializer_agents_destroy(), by any
/// thread that touches an agent.
///
/// `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_BAD_SIZE`, `HSA_SERIALIZER_BAD_VALUE`; of the domain:
/// `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_agents_create(
    options: *const hsa_serializer_options_t,
    make: hsa_serializer_make_fn,
    userdata: *mut c_void,
    agents: *mut hsa_serializer_agents_t,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let (out, builder) = unsafe { (output(agents)?, builder(options)?) };
        let make = make.ok_or(HSA_SERIALIZER_NULL_POINTER)?;
        out.write(keep(builder, Maker::Host { make, userdata }));
        Ok(())
    })
}

/// The same over AMD's runtime, by its table, which is read now.
///
/// As hsa_serializer_agents_create() and hsa_serializer_create_hsa(); `HSA_SERIALIZER_BAD_TABLE`.
///
/// # Safety
/// As said in the header, and the table is the runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_agents_create_hsa(
    options: *const hsa_serializer_options_t,
    hsa: *const hsa_serializer_hsa_t,
    agents: *mut hsa_serializer_agents_t,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let (out, builder, table) =
            unsafe { (output(agents)?, builder(options)?, Table::read(hsa)?) };
        out.write(keep(builder, Maker::Hsa(Box::new(table))));
        Ok(())
    })
}

/// Gives the handle up. Every serializer has to have ended, as for hsa_serializer_destroy(); their handles are
/// stale from then on. Nobody may touch agents meanwhile.
///
/// Once, from any thread, but not in callbacks.
///
/// `HSA_SERIALIZER_NOT_FINISHED`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`,
/// `HSA_SERIALIZER_STALE_HANDLE`.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_agents_destroy(
    agents: hsa_serializer_agents_t,
) -> hsa_serializer_status_t {
    status(|| {
        let number = agents.number()?;
        let group = GROUPS.find(number)?;
        let entries = group.entries.all();
        let ended = entries.iter().all(|entry| serializer::has_ended(**entry));
        if !ended || !group.end_what_nobody_has() {
            return Err(HSA_SERIALIZER_NOT_FINISHED);
        }
        GROUPS.take(number)?;
        for entry in entries {
            serializer::give_up(*entry);
        }
        Ok(())
    })
}

/// The agent's serializer, made if this is the first touch; it has heard of what is requested of all. Where the
/// queues of the agent are created.
///
/// The first touch takes that agent's transition lock: from where hsa_serializer_enable() may be called. No agent
/// ever waits for another.
///
/// `HSA_SERIALIZER_NULL_POINTER` and `HSA_SERIALIZER_BAD_SIZE` (also for what `make` has written),
/// `HSA_SERIALIZER_BAD_AGENT`, `HSA_SERIALIZER_NOT_A_GPU`, `HSA_SERIALIZER_NO_SIGNAL`,
/// `HSA_SERIALIZER_NULL_SIGNAL`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`,
/// `HSA_SERIALIZER_STALE_HANDLE`.
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_agents_of(
    agents: hsa_serializer_agents_t,
    agent: u64,
    serializer: *mut hsa_serializer_t,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { output(serializer) }?;
        out.write(GROUPS.find(agents.number()?)?.of(agent)?);
        Ok(())
    })
}

/// The agent's serializer, if it was touched.
///
/// No lock, and it makes nothing: for interceptors.
///
/// `HSA_SERIALIZER_UNTOUCHED`, `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_NULL_HANDLE`,
/// `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_agents_get(
    agents: hsa_serializer_agents_t,
    agent: u64,
    serializer: *mut hsa_serializer_t,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { output(serializer) }?;
        let group = GROUPS.find(agents.number()?)?;
        group.agents.get(agent).ok_or(HSA_SERIALIZER_UNTOUCHED)?;
        let entry = group.entries.find(agent);
        out.write(hsa_serializer_t::new(
            *entry.map_err(|_| HSA_SERIALIZER_UNTOUCHED)?,
        ));
        Ok(())
    })
}

/// The agents that were touched, the latest first. `count` gets how many there are; `list` gets them. With a
/// `capacity` of 0, `list` may be null, and `count` is written all the same.
///
/// No lock; from any thread.
///
/// `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_TOO_SMALL`, `HSA_SERIALIZER_NULL_HANDLE`,
/// `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_agents_list(
    agents: hsa_serializer_agents_t,
    list: *mut u64,
    capacity: usize,
    count: *mut usize,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { output(count) }?;
        let group = GROUPS.find(agents.number()?)?;
        let touched: Vec<u64> = group.agents.iter().map(|(agent, _)| agent).collect();
        // SAFETY: the caller's promise.
        unsafe { self::list(&touched, list, capacity) }?;
        out.write(touched.len());
        Ok(())
    })
}

/// Serializes these `count` agents until hsa_serializer_request_end(); they are made where they were not touched.
///
/// Takes their transition locks, one after the other: from where hsa_serializer_enable() may be called.
///
/// As hsa_serializer_agents_of(); `HSA_SERIALIZER_SHUT_DOWN`. Nothing is requested then.
///
/// # Safety
/// As said in the header: `list` points to `count` agents, or `count` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_agents_request(
    agents: hsa_serializer_agents_t,
    list: *const u64,
    count: usize,
    request: *mut hsa_serializer_request_t,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { output(request) }?;
        if list.is_null() && count != 0 {
            return Err(HSA_SERIALIZER_NULL_POINTER);
        }
        let group = GROUPS.find(agents.number()?)?;
        // SAFETY: the caller's promise.
        let some: Vec<u64> = (0..count)
            .map(|i| unsafe { list.add(i).read_unaligned() })
            .collect();
        for agent in &some {
            group.of(*agent)?;
        }
        let request = group.agents.request(some)?;
        out.write(request::keep(Guard::Agents { request }));
        Ok(())
    })
}

/// Serializes all agents until hsa_serializer_request_end(), those among them that come later. Agents whose
/// serializer has ended are passed over.
///
/// As hsa_serializer_agents_request().
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_agents_request_all(
    agents: hsa_serializer_agents_t,
    request: *mut hsa_serializer_request_t,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { output(request) }?;
        let request = GROUPS.find(agents.number()?)?.agents.request_all()?;
        out.write(request::keep(Guard::Agents { request }));
        Ok(())
    })
}
