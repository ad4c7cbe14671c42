//! Every function of the interface, with what each of its arguments is: what the misuse tests go through.

use crate::fake::{AGENT, Hsa};
use crate::world::{AGENTS, Kind, World, make_agent};
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
use hsa_serializer_capi::status::hsa_serializer_status_t as Status;
use hsa_serializer_capi::status::hsa_serializer_status_t::*;
use hsa_serializer_capi::ticket::*;
use hsa_serializer_capi::waiting::*;
use std::ffi::{c_char, c_void};

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arg {
    Handle(Kind),
    /// Null stands for something.
    HandleOrNull(Kind),
    Ticket,
    /// It is written; or written and read, where it says its size first.
    Out,
    OutOrNull,
    In,
    InOrNull,
    Function,
    FunctionOrNull,
    Userdata,
    /// And a good one.
    Number(u64),
}

/// A structure that is read, as good as it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// Nobody has written to it.
    Nothing,
    Options,
    Runtime,
    Hsa,
    Agents,
    Statistics,
}

/// A number that is none of an argument's, by the argument's place, and what comes of it.
pub(crate) type Bad = (usize, u64, Status);

pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) args: &'static [(Arg, Fill)],
    pub(crate) bad: &'static [Bad],
    /// What a good call comes to.
    pub(crate) comes_to: Status,
    pub(crate) call: fn(&mut Call<'_>) -> Status,
}

/// More than any output has.
const WORDS: usize = 64;
/// What an output is full of that was not written.
const SENTINEL: u64 = 0xa5a5_a5a5_a5a5_a5a5;

/// One call, with arguments that are good unless they are made bad.
pub(crate) struct Call<'w> {
    world: &'w World,
    hsa: &'w Hsa,
    values: Vec<u64>,
    memory: Vec<[u64; WORDS]>,
    tickets: Vec<hsa_serializer_ticket_t>,
}

impl<'w> Call<'w> {
    pub(crate) fn good(function: &Function, world: &'w World, hsa: &'w Hsa) -> Self {
        let value = |(arg, _): &(Arg, Fill)| match arg {
            Arg::Handle(kind) | Arg::HandleOrNull(kind) => world.handle(*kind),
            Arg::Number(good) => *good,
            // Not null.
            _ => 1,
        };
        let ticket = if function.name.contains("barrier_set") {
            world.set_ticket
        } else {
            world.tickets[0]
        };
        Self {
            world,
            hsa,
            values: function.args.iter().map(value).collect(),
            memory: function
                .args
                .iter()
                .map(|arg| world.filled(arg.1))
                .collect(),
            tickets: vec![ticket; function.args.len()],
        }
    }

    /// The argument at that place becomes that.
    pub(crate) fn with(mut self, at: usize, value: u64) -> Self {
        self.values[at] = value;
        self
    }

    /// A word of the structure at that place becomes that.
    pub(crate) fn with_word(mut self, at: usize, word: usize, value: u64) -> Self {
        self.memory[at][word] = value;
        self
    }

    /// Calls the function, and says what it came to and which arguments' memory it has written.
    pub(crate) fn call(mut self, function: &Function) -> (Status, Vec<usize>) {
        let before = self.memory.clone();
        let status = (function.call)(&mut self);
        let written = |at: &usize| before[*at] != self.memory[*at];
        let written = (0..before.len()).filter(written).collect();
        (status, written)
    }

    fn number<T: TryFrom<u64>>(&self, at: usize) -> T {
        T::try_from(self.values[at])
            .ok()
            .expect("a number that fits")
    }

    fn ticket(&self, at: usize) -> hsa_serializer_ticket_t {
        self.tickets[at]
    }

    fn pointer<T>(&mut self, at: usize) -> *mut T {
        assert!(size_of::<T>() <= size_of_val(&self.memory[at]));
        if self.values[at] == 0 {
            return std::ptr::null_mut();
        }
        self.memory[at].as_mut_ptr().cast()
    }

    fn function<F>(&self, at: usize, function: F) -> Option<F> {
        (self.values[at] != 0).then_some(function)
    }

    fn userdata(&self) -> *mut c_void {
        self.world.host.userdata()
    }

    /// With the runtime's table, where the argument at that place has one.
    fn with_table(&mut self, at: usize, call: impl FnOnce(&mut Self) -> Status) -> Status {
        let hsa = self.hsa;
        hsa.with_table(|root| {
            // The second word is the table; null stays null.
            let given = self.memory[at][1];
            if given == GOOD_TABLE {
                self.memory[at][1] = root.expose_provenance() as u64;
            }
            let status = call(self);
            self.memory[at][1] = given;
            status
        })
    }
}

/// Stands for the table that is good.
const GOOD_TABLE: u64 = 1;

macro_rules! handles {
    ($($method:ident, $handle:ident;)*) => {
        impl Call<'_> {$(
            fn $method(&self, at: usize) -> $handle {
                $handle { handle: self.values[at] }
            }
        )*}
    };
}

handles! {
    serializer, hsa_serializer_t;
    queue, hsa_serializer_queue_t;
    domain, hsa_serializer_domain_t;
    agents, hsa_serializer_agents_t;
    request, hsa_serializer_request_t;
    cut, hsa_serializer_cut_t;
    watch, hsa_serializer_stall_watch_t;
    set, hsa_serializer_barrier_set_t;
    barrier, hsa_serializer_barrier_t;
}

impl World {
    /// Memory for an argument.
    fn filled(&self, fill: Fill) -> [u64; WORDS] {
        let mut memory = [SENTINEL; WORDS];
        let word = |pointer: *mut c_void| pointer.expose_provenance() as u64;
        match fill {
            Fill::Nothing => {}
            Fill::Agents => memory[..AGENTS.len()].copy_from_slice(&AGENTS),
            Fill::Statistics => memory[0] = size_of::<hsa_serializer_statistics_t>() as u64,
            Fill::Options => {
                let size = size_of::<hsa_serializer_options_t>() as u64;
                memory[..4].copy_from_slice(&[size, self.handle(Kind::Domain), 7, 0]);
            }
            Fill::Hsa => {
                let size = size_of::<hsa_serializer_hsa_t>() as u64;
                let userdata = word(self.host.userdata());
                memory[..5].copy_from_slice(&[size, GOOD_TABLE, userdata, 0, 0]);
            }
            Fill::Runtime => {
                // SAFETY: there is room, and it is aligned.
                unsafe {
                    memory
                        .as_mut_ptr()
                        .cast::<hsa_serializer_runtime_t>()
                        .write(self.host.runtime())
                };
            }
        }
        memory
    }
}

unsafe extern "C" fn stuck(data: *mut c_void, _: *const hsa_serializer_in_flight_t, _: usize) {
    crate::host::of(data).state().told += 1;
}

unsafe extern "C" fn remaining(data: *mut c_void, _: *const hsa_serializer_remaining_t) {
    crate::host::of(data).state().told += 1;
}

unsafe extern "C" fn stall(data: *mut c_void, _: *const hsa_serializer_stall_t) {
    crate::host::of(data).state().told += 1;
}

unsafe extern "C" fn text(data: *mut c_void, _: *const c_char, _: usize) {
    crate::host::of(data).state().told += 1;
}

unsafe extern "C" fn ended(data: *mut c_void, _: u32) {
    crate::host::of(data).state().told += 1;
}

/// One line a function: its arguments, what is wrong with numbers, and the call.
macro_rules! functions {
    ($($name:ident($($arg:expr),*) $([$($bad:expr),*])? $(=> $comes_to:ident)?, |$c:ident| $call:expr;)*) => {
        #[allow(unused_unsafe, reason = "some functions are safe to call")]
        pub(crate) const FUNCTIONS: &[Function] = &[$(Function {
            name: stringify!($name),
            args: &[$($arg),*],
            bad: &[$($($bad),*)?],
            comes_to: functions!(@ $($comes_to)?),
            // SAFETY: pointers are null or point to enough memory, and one thread calls.
            call: |$c| unsafe { $call },
        }),*];
    };
    (@) => { HSA_SERIALIZER_SUCCESS };
    (@ $comes_to:ident) => { $comes_to };
}

use Arg::{Function as Callback, FunctionOrNull, Handle, HandleOrNull, In, InOrNull, Number, Out};
use Arg::{OutOrNull, Ticket, Userdata};

const fn plain(arg: Arg) -> (Arg, Fill) {
    (arg, Fill::Nothing)
}

const fn handle(kind: Kind) -> (Arg, Fill) {
    plain(Handle(kind))
}

const fn number(good: u64) -> (Arg, Fill) {
    plain(Number(good))
}

const SERIALIZER: (Arg, Fill) = handle(Kind::Serializer);
const QUEUE: (Arg, Fill) = handle(Kind::Queue);
const GROUP: (Arg, Fill) = handle(Kind::Agents);
const SET: (Arg, Fill) = handle(Kind::BarrierSet);
const BARRIER: (Arg, Fill) = handle(Kind::Barrier);
const CUT: (Arg, Fill) = handle(Kind::Cut);
const WATCH: (Arg, Fill) = handle(Kind::StallWatch);
const OUT: (Arg, Fill) = plain(Out);
const OUT_OR_NULL: (Arg, Fill) = plain(OutOrNull);
const STATISTICS: (Arg, Fill) = (Out, Fill::Statistics);
const OPTIONS: (Arg, Fill) = (InOrNull, Fill::Options);
const RUNTIME: (Arg, Fill) = (In, Fill::Runtime);
const HSA: (Arg, Fill) = (In, Fill::Hsa);
const LIST: (Arg, Fill) = (In, Fill::Agents);
const TOLD: (Arg, Fill) = plain(FunctionOrNull);
const CALLED: (Arg, Fill) = plain(Callback);
const USERDATA: (Arg, Fill) = plain(Userdata);
const TICKET: (Arg, Fill) = plain(Ticket);
/// Packets: as many as one dispatch can need.
const ROOM: (Arg, Fill) = number(HSA_SERIALIZER_MAX_PACKETS as u64);

/// Nobody's agent.
const NO_AGENT: u64 = 0xbad;
const NOW: u64 = 0;

functions! {
    hsa_serializer_create(OPTIONS, RUNTIME, OUT), |c| {
        hsa_serializer_create(c.pointer(0), c.pointer(1), c.pointer(2))
    };
    hsa_serializer_create_hsa(OPTIONS, HSA, number(AGENT.handle), OUT) [(2, NO_AGENT, HSA_SERIALIZER_BAD_AGENT)], |c| {
        c.with_table(1, |c| {
            hsa_serializer_create_hsa(c.pointer(0), c.pointer(1), c.number(2), c.pointer(3))
        })
    };
    hsa_serializer_destroy(SERIALIZER) => HSA_SERIALIZER_NOT_FINISHED, |c| {
        hsa_serializer_destroy(c.serializer(0))
    };
    hsa_serializer_mode(SERIALIZER, OUT), |c| {
        hsa_serializer_mode(c.serializer(0), c.pointer(1))
    };
    hsa_serializer_enable(SERIALIZER, OUT_OR_NULL), |c| {
        hsa_serializer_enable(c.serializer(0), c.pointer(1))
    };
    hsa_serializer_disable(SERIALIZER, OUT_OR_NULL), |c| {
        hsa_serializer_disable(c.serializer(0), c.pointer(1))
    };
    hsa_serializer_collect(SERIALIZER), |c| hsa_serializer_collect(c.serializer(0));
    hsa_serializer_queue_add(SERIALIZER, OUT), |c| {
        hsa_serializer_queue_add(c.serializer(0), c.pointer(1))
    };
    hsa_serializer_queue_id(QUEUE, OUT), |c| {
        hsa_serializer_queue_id(c.queue(0), c.pointer(1))
    };
    hsa_serializer_dispatch(QUEUE, OUT, ROOM, OUT)
        [(2, 0, HSA_SERIALIZER_TOO_SMALL), (2, 3, HSA_SERIALIZER_TOO_SMALL)], |c| {
        hsa_serializer_dispatch(c.queue(0), c.pointer(1), c.number(2), c.pointer(3))
    };
    hsa_serializer_try_dispatch(QUEUE, OUT, ROOM, number(2), OUT)
        [(2, 0, HSA_SERIALIZER_TOO_SMALL), (2, 3, HSA_SERIALIZER_TOO_SMALL),
         (3, 1, HSA_SERIALIZER_LIMIT), (3, 0, HSA_SERIALIZER_LIMIT)], |c| {
        hsa_serializer_try_dispatch(c.queue(0), c.pointer(1), c.number(2), c.number(3), c.pointer(4))
    };
    hsa_serializer_queue_in_flight(QUEUE, OUT), |c| {
        hsa_serializer_queue_in_flight(c.queue(0), c.pointer(1))
    };
    hsa_serializer_gap(QUEUE, OUT, ROOM, OUT)
        [(2, 0, HSA_SERIALIZER_TOO_SMALL), (2, 3, HSA_SERIALIZER_TOO_SMALL)], |c| {
        hsa_serializer_gap(c.queue(0), c.pointer(1), c.number(2), c.pointer(3))
    };
    hsa_serializer_queue_destroyed(QUEUE), |c| hsa_serializer_queue_destroyed(c.queue(0));
    hsa_serializer_complete(SERIALIZER, TICKET), |c| {
        hsa_serializer_complete(c.serializer(0), c.ticket(1))
    };
    hsa_serializer_check(SERIALIZER, TICKET), |c| {
        hsa_serializer_check(c.serializer(0), c.ticket(1))
    };
    hsa_serializer_request(SERIALIZER, OUT), |c| {
        hsa_serializer_request(c.serializer(0), c.pointer(1))
    };
    hsa_serializer_request_end(handle(Kind::Request), OUT_OR_NULL), |c| {
        hsa_serializer_request_end(c.request(0), c.pointer(1))
    };
    hsa_serializer_acquire(SERIALIZER, OUT_OR_NULL), |c| {
        hsa_serializer_acquire(c.serializer(0), c.pointer(1))
    };
    hsa_serializer_release(SERIALIZER, OUT_OR_NULL), |c| {
        hsa_serializer_release(c.serializer(0), c.pointer(1))
    };
    hsa_serializer_requests(SERIALIZER, OUT), |c| {
        hsa_serializer_requests(c.serializer(0), c.pointer(1))
    };
    hsa_serializer_drain(SERIALIZER, number(NOW), TOLD, USERDATA) => HSA_SERIALIZER_TIMED_OUT, |c| {
        hsa_serializer_drain(c.serializer(0), c.number(1), c.function(2, stuck), c.userdata())
    };
    hsa_serializer_cut(SERIALIZER, OUT), |c| {
        hsa_serializer_cut(c.serializer(0), c.pointer(1))
    };
    hsa_serializer_cut_in_flight(CUT, OUT, number(2), OUT) [(2, 1, HSA_SERIALIZER_TOO_SMALL)], |c| {
        hsa_serializer_cut_in_flight(c.cut(0), c.pointer(1), c.number(2), c.pointer(3))
    };
    hsa_serializer_cut_end(CUT), |c| hsa_serializer_cut_end(c.cut(0));
    hsa_serializer_cut_withdraw(CUT, OUT_OR_NULL), |c| {
        hsa_serializer_cut_withdraw(c.cut(0), c.pointer(1))
    };
    hsa_serializer_begin_shutdown(SERIALIZER), |c| hsa_serializer_begin_shutdown(c.serializer(0));
    hsa_serializer_finish_shutdown(SERIALIZER, number(NOW), TOLD, USERDATA) => HSA_SERIALIZER_TIMED_OUT, |c| {
        hsa_serializer_finish_shutdown(c.serializer(0), c.number(1), c.function(2, remaining), c.userdata())
    };
    hsa_serializer_try_finish_shutdown(SERIALIZER, TOLD, USERDATA) => HSA_SERIALIZER_NOT_FINISHED, |c| {
        hsa_serializer_try_finish_shutdown(c.serializer(0), c.function(1, remaining), c.userdata())
    };
    hsa_serializer_release_all(SERIALIZER), |c| hsa_serializer_release_all(c.serializer(0));
    hsa_serializer_leave(SERIALIZER), |c| hsa_serializer_leave(c.serializer(0));
    hsa_serializer_stall_watch_create(SERIALIZER, number(1), number(0), OUT)
        [(2, 2, HSA_SERIALIZER_BAD_VALUE), (2, u32::MAX as u64, HSA_SERIALIZER_BAD_VALUE)], |c| {
        hsa_serializer_stall_watch_create(c.serializer(0), c.number(1), c.number(2), c.pointer(3))
    };
    hsa_serializer_stall_watch_check(WATCH, number(5), TOLD, USERDATA, OUT_OR_NULL), |c| {
        hsa_serializer_stall_watch_check(
            c.watch(0), c.number(1), c.function(2, stall), c.userdata(), c.pointer(4),
        )
    };
    hsa_serializer_stall_watch_destroy(WATCH), |c| hsa_serializer_stall_watch_destroy(c.watch(0));
    hsa_serializer_statistics(SERIALIZER, STATISTICS), |c| {
        hsa_serializer_statistics(c.serializer(0), c.pointer(1))
    };
    hsa_serializer_snapshot_text(SERIALIZER, CALLED, USERDATA), |c| {
        hsa_serializer_snapshot_text(c.serializer(0), c.function(1, text), c.userdata())
    };
    hsa_serializer_snapshots_text(CALLED, USERDATA), |c| {
        hsa_serializer_snapshots_text(c.function(0, text), c.userdata())
    };
    hsa_serializer_domain_create(OUT), |c| hsa_serializer_domain_create(c.pointer(0));
    hsa_serializer_domain_destroy(handle(Kind::Domain)), |c| {
        hsa_serializer_domain_destroy(c.domain(0))
    };
    hsa_serializer_domain_pending(plain(HandleOrNull(Kind::Domain)), OUT), |c| {
        hsa_serializer_domain_pending(c.domain(0), c.pointer(1))
    };
    hsa_serializer_agents_create(OPTIONS, CALLED, USERDATA, OUT), |c| {
        hsa_serializer_agents_create(c.pointer(0), c.function(1, make_agent), c.userdata(), c.pointer(3))
    };
    hsa_serializer_agents_create_hsa(OPTIONS, HSA, OUT), |c| c.with_table(1, |c| {
        hsa_serializer_agents_create_hsa(c.pointer(0), c.pointer(1), c.pointer(2))
    });
    hsa_serializer_agents_destroy(GROUP) => HSA_SERIALIZER_NOT_FINISHED, |c| {
        hsa_serializer_agents_destroy(c.agents(0))
    };
    hsa_serializer_agents_of(GROUP, number(13), OUT), |c| {
        hsa_serializer_agents_of(c.agents(0), c.number(1), c.pointer(2))
    };
    hsa_serializer_agents_get(GROUP, number(AGENTS[0]), OUT) [(1, 13, HSA_SERIALIZER_UNTOUCHED)], |c| {
        hsa_serializer_agents_get(c.agents(0), c.number(1), c.pointer(2))
    };
    hsa_serializer_agents_list(GROUP, OUT, number(2), OUT) [(2, 1, HSA_SERIALIZER_TOO_SMALL)], |c| {
        hsa_serializer_agents_list(c.agents(0), c.pointer(1), c.number(2), c.pointer(3))
    };
    hsa_serializer_agents_request(GROUP, LIST, number(2), OUT), |c| {
        hsa_serializer_agents_request(c.agents(0), c.pointer(1), c.number(2), c.pointer(3))
    };
    hsa_serializer_agents_request_all(GROUP, OUT), |c| {
        hsa_serializer_agents_request_all(c.agents(0), c.pointer(1))
    };
    hsa_serializer_barrier_set_create(OPTIONS, RUNTIME, OUT), |c| {
        hsa_serializer_barrier_set_create(c.pointer(0), c.pointer(1), c.pointer(2))
    };
    hsa_serializer_barrier_set_create_hsa(OPTIONS, HSA, number(AGENT.handle), OUT)
        [(2, NO_AGENT, HSA_SERIALIZER_BAD_AGENT)], |c| {
        c.with_table(1, |c| {
            hsa_serializer_barrier_set_create_hsa(c.pointer(0), c.pointer(1), c.number(2), c.pointer(3))
        })
    };
    hsa_serializer_barrier_set_destroy(SET) => HSA_SERIALIZER_NOT_FINISHED, |c| {
        hsa_serializer_barrier_set_destroy(c.set(0))
    };
    hsa_serializer_barrier_set_queue_add(SET, OUT), |c| {
        hsa_serializer_barrier_set_queue_add(c.set(0), c.pointer(1))
    };
    hsa_serializer_barrier_set_complete(SET, TICKET), |c| {
        hsa_serializer_barrier_set_complete(c.set(0), c.ticket(1))
    };
    hsa_serializer_barrier_set_statistics(SET, STATISTICS), |c| {
        hsa_serializer_barrier_set_statistics(c.set(0), c.pointer(1))
    };
    hsa_serializer_barrier_set_arm(SET, TOLD, USERDATA, OUT_OR_NULL), |c| {
        hsa_serializer_barrier_set_arm(c.set(0), c.function(1, ended), c.userdata(), c.pointer(3))
    };
    hsa_serializer_barrier_drain_queue(BARRIER, number(1), OUT), |c| {
        hsa_serializer_barrier_drain_queue(c.barrier(0), c.number(1), c.pointer(2))
    };
    hsa_serializer_barrier_state(BARRIER, OUT), |c| {
        hsa_serializer_barrier_state(c.barrier(0), c.pointer(1))
    };
    hsa_serializer_barrier_destroy(BARRIER), |c| hsa_serializer_barrier_destroy(c.barrier(0));
}

/// Functions that have nothing to be misused, or take anything: each has a test of its own, in `anything.rs`.
pub(crate) const OTHERS: &[&str] = &[
    "hsa_serializer_ready",
    "hsa_serializer_status_string",
    "hsa_serializer_last_runtime_status",
    "hsa_serializer_version",
    "hsa_serializer_version_number",
    "hsa_serializer_print_all",
];
