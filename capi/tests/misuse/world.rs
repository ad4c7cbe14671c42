//! One of everything that has a handle, in the middle of its work.

use crate::host::{Called, Host, of};
use hsa_serializer_capi::agents::*;
use hsa_serializer_capi::barrier_set::*;
use hsa_serializer_capi::domain::*;
use hsa_serializer_capi::handle::*;
use hsa_serializer_capi::insight::*;
use hsa_serializer_capi::queue::*;
use hsa_serializer_capi::request::*;
use hsa_serializer_capi::runtime::*;
use hsa_serializer_capi::serializer::*;
use hsa_serializer_capi::shutdown::*;
use hsa_serializer_capi::stall::*;
use hsa_serializer_capi::status::hsa_serializer_status_t;
use hsa_serializer_capi::status::hsa_serializer_status_t::*;
use hsa_serializer_capi::ticket::*;
use hsa_serializer_capi::waiting::*;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::time::{Duration, Instant};

/// What a handle names, by the name that C has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Serializer,
    Queue,
    Domain,
    Agents,
    Request,
    Cut,
    StallWatch,
    BarrierSet,
    Barrier,
}

impl Kind {
    pub(crate) const ALL: [Self; 9] = [
        Self::Serializer,
        Self::Queue,
        Self::Domain,
        Self::Agents,
        Self::Request,
        Self::Cut,
        Self::StallWatch,
        Self::BarrierSet,
        Self::Barrier,
    ];

    pub(crate) fn c_name(self) -> &'static str {
        match self {
            Self::Serializer => "hsa_serializer_t",
            Self::Queue => "hsa_serializer_queue_t",
            Self::Domain => "hsa_serializer_domain_t",
            Self::Agents => "hsa_serializer_agents_t",
            Self::Request => "hsa_serializer_request_t",
            Self::Cut => "hsa_serializer_cut_t",
            Self::StallWatch => "hsa_serializer_stall_watch_t",
            Self::BarrierSet => "hsa_serializer_barrier_set_t",
            Self::Barrier => "hsa_serializer_barrier_t",
        }
    }
}

/// What a function writes to its output, if it came to success.
pub(crate) fn made<T>(
    make: impl FnOnce(*mut T) -> hsa_serializer_status_t,
) -> Result<T, hsa_serializer_status_t> {
    let mut out = MaybeUninit::<T>::uninit();
    match make(out.as_mut_ptr()) {
        // SAFETY: on success the output was written.
        HSA_SERIALIZER_SUCCESS => Ok(unsafe { out.assume_init() }),
        status => Err(status),
    }
}

/// Room for the packets of a dispatch.
pub(crate) type Room = [[u8; 64]; HSA_SERIALIZER_MAX_PACKETS];

pub(crate) fn dispatch(
    queue: hsa_serializer_queue_t,
) -> Result<hsa_serializer_dispatch_t, hsa_serializer_status_t> {
    let mut room: Room = [[0; 64]; HSA_SERIALIZER_MAX_PACKETS];
    // SAFETY: there is room, and no test has two calls of one queue at once.
    made(|out| unsafe { hsa_serializer_dispatch(queue, room.as_mut_ptr().cast(), room.len(), out) })
}

pub(crate) fn add_queue(
    serializer: hsa_serializer_t,
) -> Result<hsa_serializer_queue_t, hsa_serializer_status_t> {
    // SAFETY: the output can be written.
    made(|out| unsafe { hsa_serializer_queue_add(serializer, out) })
}

pub(crate) fn id(queue: hsa_serializer_queue_t) -> u64 {
    // SAFETY: as above.
    made(|out| unsafe { hsa_serializer_queue_id(queue, out) }).unwrap()
}

pub(crate) fn options(domain: hsa_serializer_domain_t) -> hsa_serializer_options_t {
    hsa_serializer_options_t {
        size: size_of::<hsa_serializer_options_t>(),
        domain,
        agent: 7,
        on_misuse: 0,
    }
}

/// A serializer with a domain of its own, so that nothing of another test's holds it back.
pub(crate) fn serializer(host: &'static Host) -> hsa_serializer_t {
    // SAFETY: outputs can be written, and what is given is what it has to be.
    unsafe {
        let domain = made(|out| hsa_serializer_domain_create(out)).unwrap();
        let (options, runtime) = (options(domain), host.runtime());
        made(|out| hsa_serializer_create(&raw const options, &raw const runtime, out)).unwrap()
    }
}

pub(crate) fn statistics(serializer: hsa_serializer_t) -> hsa_serializer_statistics_t {
    // SAFETY: zero is a value of it; its size is said.
    unsafe {
        let mut counted: hsa_serializer_statistics_t = std::mem::zeroed();
        counted.size = size_of_val(&counted);
        let status = hsa_serializer_statistics(serializer, &raw mut counted);
        assert_eq!(status, HSA_SERIALIZER_SUCCESS);
        counted
    }
}

/// Shuts a serializer down in good order: whatever it has left in flight is of queues that are gone.
pub(crate) fn finish(host: &Host, serializer: hsa_serializer_t) {
    let start = Instant::now();
    loop {
        host.call_handlers();
        // SAFETY: `remaining` may be null.
        match unsafe { hsa_serializer_try_finish_shutdown(serializer, None, ptr::null_mut()) } {
            HSA_SERIALIZER_SUCCESS => return,
            HSA_SERIALIZER_NOT_FINISHED => assert!(start.elapsed() < LONG, "it does not end"),
            status => panic!("{status:?}"),
        }
    }
}

/// The same, and its handle is given up.
pub(crate) fn end(host: &Host, serializer: hsa_serializer_t) {
    finish(host, serializer);
    let destroyed = hsa_serializer_destroy(serializer);
    assert_eq!(destroyed, HSA_SERIALIZER_SUCCESS);
}

/// No end takes so long, on a busy machine either.
const LONG: Duration = Duration::from_secs(20);

/// Makes an agent's runtime: the same host's for every agent.
pub(crate) unsafe extern "C" fn make_agent(
    userdata: *mut c_void,
    _: u64,
    runtime: *mut hsa_serializer_runtime_t,
) -> u32 {
    // SAFETY: the library gives a place for it.
    unsafe { runtime.write(of(userdata).runtime()) };
    0
}

/// See the [module](self). Two queues have a kernel in flight each, for which a barrier is armed, since somebody
/// has requested serializing; the set has one in flight, and a barrier of its own; two agents were touched.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) host: &'static Host,
    handles: [u64; Kind::ALL.len()],
    pub(crate) queues: [hsa_serializer_queue_t; 2],
    pub(crate) tickets: [hsa_serializer_ticket_t; 2],
    pub(crate) set_queue: hsa_serializer_queue_t,
    pub(crate) set_ticket: hsa_serializer_ticket_t,
}

/// The agents that were touched.
pub(crate) const AGENTS: [u64; 2] = [11, 12];

impl World {
    pub(crate) fn new() -> Self {
        let host = Host::new();
        let runtime = host.runtime();
        // SAFETY: outputs can be written, what is given is what it has to be, one thread calls.
        unsafe {
            let domain = made(|out| hsa_serializer_domain_create(out)).unwrap();
            let options = options(domain);
            let serializer =
                made(|out| hsa_serializer_create(&raw const options, &raw const runtime, out))
                    .unwrap();
            let queues = [(); 2].map(|()| add_queue(serializer).unwrap());
            let tickets = queues.map(|queue| dispatch(queue).unwrap().ticket);
            let request = made(|out| hsa_serializer_request(serializer, out)).unwrap();
            let acquired = hsa_serializer_acquire(serializer, ptr::null_mut());
            assert_eq!(acquired, HSA_SERIALIZER_SUCCESS);
            let cut = made(|out| hsa_serializer_cut(serializer, out)).unwrap();
            let watch =
                made(|out| hsa_serializer_stall_watch_create(serializer, 1, 0, out)).unwrap();
            let set = made(|out| {
                hsa_serializer_barrier_set_create(&raw const options, &raw const runtime, out)
            })
            .unwrap();
            let set_queue = made(|out| hsa_serializer_barrier_set_queue_add(set, out)).unwrap();
            let set_ticket = dispatch(set_queue).unwrap().ticket;
            let barrier =
                made(|out| hsa_serializer_barrier_set_arm(set, None, ptr::null_mut(), out))
                    .unwrap();
            let agents = made(|out| {
                let make = Some(make_agent as _);
                hsa_serializer_agents_create(&raw const options, make, host.userdata(), out)
            })
            .unwrap();
            for agent in AGENTS {
                made(|out| hsa_serializer_agents_of(agents, agent, out)).unwrap();
            }
            let handles = Kind::ALL.map(|kind| match kind {
                Kind::Serializer => serializer.handle,
                Kind::Queue => queues[0].handle,
                Kind::Domain => domain.handle,
                Kind::Agents => agents.handle,
                Kind::Request => request.handle,
                Kind::Cut => cut.handle,
                Kind::StallWatch => watch.handle,
                Kind::BarrierSet => set.handle,
                Kind::Barrier => barrier.handle,
            });
            Self {
                host,
                handles,
                queues,
                tickets,
                set_queue,
                set_ticket,
            }
        }
    }

    pub(crate) fn handle(&self, kind: Kind) -> u64 {
        let at = Kind::ALL.iter().position(|k| *k == kind);
        self.handles[at.expect("all are there")]
    }

    pub(crate) fn serializer(&self) -> hsa_serializer_t {
        hsa_serializer_t {
            handle: self.handle(Kind::Serializer),
        }
    }

    pub(crate) fn set(&self) -> hsa_serializer_barrier_set_t {
        hsa_serializer_barrier_set_t {
            handle: self.handle(Kind::BarrierSet),
        }
    }

    pub(crate) fn agents(&self) -> hsa_serializer_agents_t {
        hsa_serializer_agents_t {
            handle: self.handle(Kind::Agents),
        }
    }

    fn agents_serializers(&self) -> [hsa_serializer_t; 2] {
        // SAFETY: the output can be written.
        AGENTS.map(|agent| unsafe {
            made(|out| hsa_serializer_agents_get(self.agents(), agent, out)).unwrap()
        })
    }

    /// Everything that can be asked, but for what time changes by itself.
    pub(crate) fn seen(&self) -> Seen {
        let of_serializers = [self.serializer()]
            .into_iter()
            .chain(self.agents_serializers())
            .map(|serializer| {
                // SAFETY: outputs can be written.
                unsafe {
                    let mode = made(|out| hsa_serializer_mode(serializer, out)).unwrap();
                    let requests = made(|out| hsa_serializer_requests(serializer, out)).unwrap();
                    let counted = without_times(statistics(serializer));
                    (mode, requests, format!("{counted:?}"))
                }
            });
        let of_serializers = of_serializers.collect();
        // SAFETY: zero is a value of it; outputs can be written; one thread calls.
        unsafe {
            let mut counted: hsa_serializer_statistics_t = std::mem::zeroed();
            counted.size = size_of_val(&counted);
            let told = hsa_serializer_barrier_set_statistics(self.set(), &raw mut counted);
            assert_eq!(told, HSA_SERIALIZER_SUCCESS);
            let [first, second] = self.queues;
            let in_flight = [first, second, self.set_queue]
                .map(|queue| made(|out| hsa_serializer_queue_in_flight(queue, out)).unwrap());
            let mut agents = 0;
            let listed =
                hsa_serializer_agents_list(self.agents(), ptr::null_mut(), 0, &raw mut agents);
            assert_eq!(listed, HSA_SERIALIZER_SUCCESS);
            let state = self.host.state();
            Seen {
                of_serializers,
                of_set: format!("{:?}", without_times(counted)),
                in_flight,
                agents,
                called: state.called.clone(),
                reports: state.reports.clone(),
                events: state.events.len(),
                told: state.told,
            }
        }
    }

    pub(crate) fn request(&self) -> hsa_serializer_request_t {
        hsa_serializer_request_t {
            handle: self.handle(Kind::Request),
        }
    }

    pub(crate) fn cut(&self) -> hsa_serializer_cut_t {
        hsa_serializer_cut_t {
            handle: self.handle(Kind::Cut),
        }
    }

    pub(crate) fn watch(&self) -> hsa_serializer_stall_watch_t {
        hsa_serializer_stall_watch_t {
            handle: self.handle(Kind::StallWatch),
        }
    }

    pub(crate) fn barrier(&self) -> hsa_serializer_barrier_t {
        hsa_serializer_barrier_t {
            handle: self.handle(Kind::Barrier),
        }
    }

    pub(crate) fn domain(&self) -> hsa_serializer_domain_t {
        hsa_serializer_domain_t {
            handle: self.handle(Kind::Domain),
        }
    }

    /// Ends all of it, so that each handle is stale.
    pub(crate) fn end(&self) {
        let ok = |status| assert_eq!(status, HSA_SERIALIZER_SUCCESS);
        for serializer in self.agents_serializers() {
            finish(self.host, serializer);
        }
        ok(hsa_serializer_agents_destroy(self.agents()));
        for queue in self.queues.iter().chain([&self.set_queue]) {
            ok(hsa_serializer_queue_destroyed(*queue));
        }
        // SAFETY: the output may be null.
        ok(unsafe { hsa_serializer_request_end(self.request(), ptr::null_mut()) });
        ok(hsa_serializer_cut_end(self.cut()));
        ok(hsa_serializer_stall_watch_destroy(self.watch()));
        ok(hsa_serializer_barrier_destroy(self.barrier()));
        ok(hsa_serializer_barrier_set_destroy(self.set()));
        end(self.host, self.serializer());
        ok(hsa_serializer_domain_destroy(self.domain()));
        self.host.assert_no_violations();
        assert_eq!(self.host.signals(), 0, "signals are left");
    }
}

fn without_times(counted: hsa_serializer_statistics_t) -> hsa_serializer_statistics_t {
    hsa_serializer_statistics_t {
        serialized: 0,
        barriers_armed: 0,
        barriers_armed_most: 0,
        token_waited: 0,
        token_waited_most: 0,
        // Of the whole domain, and reclaimed by whatever is slow.
        reclaim_pending: 0,
        ..counted
    }
}

/// What a [`World`] looks like from outside.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Modes, requests and statistics.
    of_serializers: Vec<(u32, u64, String)>,
    of_set: String,
    in_flight: [u64; 3],
    agents: usize,
    called: Vec<Called>,
    reports: Vec<(u32, String)>,
    events: usize,
    told: usize,
}

impl Seen {
    /// Without what a call that fails halfway may have told the host.
    pub(crate) fn state(self) -> Self {
        Self {
            called: Vec::new(),
            events: 0,
            ..self
        }
    }
}
