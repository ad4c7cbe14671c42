//! Callbacks that refuse, agents that can't be made, callbacks that call back; and what callbacks are told.

use crate::host::{Host, NoSignal, of};
use crate::world::*;
use hsa_serializer_capi::agents::*;
use hsa_serializer_capi::barrier_set::*;
use hsa_serializer_capi::event::hsa_serializer_event_kind_t::*;
use hsa_serializer_capi::event::hsa_serializer_report_kind_t::*;
use hsa_serializer_capi::handle::*;
use hsa_serializer_capi::insight::*;
use hsa_serializer_capi::queue::*;
use hsa_serializer_capi::request::*;
use hsa_serializer_capi::runtime::hsa_serializer_runtime_t;
use hsa_serializer_capi::serializer::*;
use hsa_serializer_capi::shutdown::*;
use hsa_serializer_capi::stall::*;
use hsa_serializer_capi::status::hsa_serializer_last_runtime_status;
use hsa_serializer_capi::status::hsa_serializer_status_t as Status;
use hsa_serializer_capi::status::hsa_serializer_status_t::*;
use hsa_serializer_capi::ticket::*;
use hsa_serializer_capi::waiting::*;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::Mutex;

/// Something that makes signals.
type Makes = (&'static str, fn(&World) -> Status);

fn status_of<T>(made: Result<T, Status>) -> Status {
    made.err().unwrap_or(HSA_SERIALIZER_SUCCESS)
}

fn gap(queue: hsa_serializer_queue_t) -> Result<hsa_serializer_marker_t, Status> {
    let mut room: Room = [[0; 64]; HSA_SERIALIZER_MAX_PACKETS];
    // SAFETY: there is room; one call at a time.
    made(|out| unsafe { hsa_serializer_gap(queue, room.as_mut_ptr().cast(), room.len(), out) })
}

const MAKES: [Makes; 7] = [
    ("queue_add", |w| status_of(add_queue(w.serializer()))),
    // SAFETY: outputs can be written, or may be null.
    ("cut", |w| {
        // SAFETY: the output can be written.
        status_of(made(|out| unsafe {
            hsa_serializer_cut(w.serializer(), out)
        }))
    }),
    ("gap", |w| status_of(gap(w.queues[0]))),
    // SAFETY: as above.
    ("drain", |w| unsafe {
        hsa_serializer_drain(w.serializer(), 0, None, ptr::null_mut())
    }),
    // SAFETY: as above.
    ("barrier_set_arm", |w| unsafe {
        hsa_serializer_barrier_set_arm(w.set(), None, ptr::null_mut(), ptr::null_mut())
    }),
    // SAFETY: as above.
    ("request", |w| {
        // SAFETY: as above.
        status_of(made(|out| unsafe { hsa_serializer_request(off(w), out) }))
    }),
    // SAFETY: as above.
    ("enable", |w| unsafe {
        hsa_serializer_enable(off(w), ptr::null_mut())
    }),
];

/// A serializer that is off: an agent's, with a kernel in flight.
fn off(world: &World) -> hsa_serializer_t {
    // SAFETY: the output can be written.
    unsafe { made(|out| hsa_serializer_agents_get(world.agents(), AGENTS[0], out)).unwrap() }
}

#[test]
fn whichever_signal_is_refused_nothing_has_happened() {
    for (what, make) in MAKES {
        for (how, comes_to) in [
            (NoSignal::Status(0x1008), HSA_SERIALIZER_NO_SIGNAL),
            (NoSignal::Null, HSA_SERIALIZER_NULL_SIGNAL),
        ] {
            let world = World::new();
            let mut refusals = 0;
            loop {
                let before = world.seen().state();
                let signals = world.host.signals();
                world.host.refuse_signals(refusals, how);
                let status = make(&world);
                world.host.refuse_nothing();
                if status != comes_to {
                    let good = [HSA_SERIALIZER_SUCCESS, HSA_SERIALIZER_TIMED_OUT];
                    assert!(good.contains(&status), "{what}, {how:?}: {status:?}");
                    break;
                }
                if how == NoSignal::Status(0x1008) {
                    assert_eq!(hsa_serializer_last_runtime_status(), 0x1008, "{what}");
                }
                assert_eq!(world.host.signals(), signals, "{what}, {how:?}");
                assert_eq!(before, world.seen().state(), "{what}, {how:?}");
                refusals += 1;
            }
            assert!(refusals > 0, "{what} makes no signal");
            world.host.assert_no_violations();
        }
    }
}

#[test]
fn a_handler_that_is_refused_leaves_no_queue() {
    let world = World::new();
    let (before, signals) = (world.seen().state(), world.host.signals());
    world.host.state().no_watch = Some(0x1001);
    for _ in 0..3 {
        let refused = add_queue(world.serializer()).err();
        assert_eq!(refused, Some(HSA_SERIALIZER_HANDLER_REFUSED));
        assert_eq!(hsa_serializer_last_runtime_status(), 0x1001);
    }
    world.host.refuse_nothing();
    assert_eq!(world.host.signals(), signals);
    assert_eq!(before, world.seen().state());
    add_queue(world.serializer()).unwrap();
}

#[test]
fn a_signal_that_is_not_destroyed_is_reported() {
    let host = Host::new();
    let serializer = serializer(host);
    let queue = add_queue(serializer).unwrap();
    host.state().no_destroy = Some(0x1009);
    assert_eq!(
        hsa_serializer_queue_destroyed(queue),
        HSA_SERIALIZER_SUCCESS
    );
    end(host, serializer);
    let reports = host.state().reports.clone();
    assert!(!reports.is_empty());
    for (kind, text) in reports {
        assert_eq!(kind, HSA_SERIALIZER_REPORT_DESTROY_FAILED as u32, "{text}");
        assert!(text.contains("destroying signal"), "{text}");
    }
}

#[test]
fn a_handlers_thread_does_not_wait_for_itself() {
    let world = World::new();
    world.host.state().is_handler_thread = true;
    let serializer = world.serializer();
    let before = world.seen();
    // SAFETY: callbacks may be null.
    let drained = unsafe { hsa_serializer_drain(serializer, u64::MAX, None, ptr::null_mut()) };
    assert_eq!(drained, HSA_SERIALIZER_ON_HANDLER_THREAD);
    assert_eq!(before, world.seen());
    // SAFETY: as above.
    let finished =
        unsafe { hsa_serializer_finish_shutdown(serializer, u64::MAX, None, ptr::null_mut()) };
    assert_eq!(finished, HSA_SERIALIZER_ON_HANDLER_THREAD);
    assert_eq!(
        dispatch(world.queues[0]).err(),
        Some(HSA_SERIALIZER_SHUT_DOWN)
    );
}

unsafe extern "C" fn make_with_a_status(
    userdata: *mut c_void,
    agent: u64,
    runtime: *mut hsa_serializer_runtime_t,
) -> u32 {
    if agent == 1 {
        return 0x1004;
    }
    // SAFETY: the library gives a place for it.
    unsafe { runtime.write(of(userdata).runtime()) };
    0
}

#[test]
fn what_an_agents_maker_has_said_is_the_last_runtime_status() {
    let host = Host::new();
    let agents = agents_of(host, make_with_a_status);
    let serializer = serializer(host);
    host.refuse_signals(0, NoSignal::Status(0x1008));
    assert_eq!(add_queue(serializer).err(), Some(HSA_SERIALIZER_NO_SIGNAL));
    assert_eq!(hsa_serializer_last_runtime_status(), 0x1008);
    host.refuse_nothing();
    // SAFETY: the output can be written.
    let refused = unsafe { made(|out| hsa_serializer_agents_of(agents, 1, out)) };
    assert_eq!(refused.err(), Some(HSA_SERIALIZER_BAD_AGENT));
    assert_eq!(hsa_serializer_last_runtime_status(), 0x1004);
    end(host, serializer);
    assert_eq!(
        hsa_serializer_agents_destroy(agents),
        HSA_SERIALIZER_SUCCESS
    );
}

fn agents_of(
    host: &'static Host,
    make: unsafe extern "C" fn(*mut c_void, u64, *mut hsa_serializer_runtime_t) -> u32,
) -> hsa_serializer_agents_t {
    // SAFETY: the output can be written; the function may be called with the host.
    unsafe {
        made(|out| hsa_serializer_agents_create(ptr::null(), Some(make), host.userdata(), out))
    }
    .unwrap()
}

/// What its thread's end drops touches an agent, when other thread-locals are gone.
struct Touches(hsa_serializer_agents_t, &'static Mutex<Option<Status>>);

impl Drop for Touches {
    fn drop(&mut self) {
        // SAFETY: the output can be written.
        let touched = unsafe { made(|out| hsa_serializer_agents_of(self.0, 5, out)) };
        *self.1.lock().unwrap() = Some(touched.err().unwrap_or(HSA_SERIALIZER_SUCCESS));
    }
}

#[test]
fn s72_a_thread_that_ends_may_touch_an_agent() {
    std::thread_local! {
        static TOUCHES: std::cell::RefCell<Option<Touches>> = const { std::cell::RefCell::new(None) };
    }
    static SAID: Mutex<Option<Status>> = Mutex::new(None);
    let host = Host::new();
    let agents = agents_of(host, make_with_a_status);
    let ends = std::thread::spawn(move || {
        TOUCHES.with(|touches| *touches.borrow_mut() = Some(Touches(agents, &SAID)));
        // SAFETY: the output can be written. Whatever this makes local to the thread goes before `TOUCHES`.
        unsafe { made(|out| hsa_serializer_agents_of(agents, 4, out)) }.unwrap();
    });
    ends.join().unwrap();
    assert_eq!(*SAID.lock().unwrap(), Some(HSA_SERIALIZER_SUCCESS));
    for agent in [4, 5] {
        // SAFETY: the output can be written.
        let made = unsafe { made(|out| hsa_serializer_agents_get(agents, agent, out)) };
        finish(host, made.unwrap());
    }
    assert_eq!(
        hsa_serializer_agents_destroy(agents),
        HSA_SERIALIZER_SUCCESS
    );
}

unsafe extern "C" fn make_none(
    userdata: *mut c_void,
    agent: u64,
    runtime: *mut hsa_serializer_runtime_t,
) -> u32 {
    let host = of(userdata);
    host.state().told += 1;
    let mut made = host.runtime();
    match agent {
        1 => return 1,
        // Nothing is written.
        2 => return 0,
        3 => made.store = None,
        4 => made.size += 8,
        _ => {}
    }
    // SAFETY: the library gives a place for it.
    unsafe { runtime.write(made) };
    0
}

#[test]
fn an_agent_that_can_not_be_made_is_not_touched() {
    let host = Host::new();
    let refusals = [
        (1, HSA_SERIALIZER_BAD_AGENT),
        (2, HSA_SERIALIZER_BAD_SIZE),
        (3, HSA_SERIALIZER_NULL_POINTER),
        (4, HSA_SERIALIZER_BAD_SIZE),
    ];
    // SAFETY: outputs can be written, lists are as long as is said.
    unsafe {
        let make = Some(make_none as _);
        let agents =
            made(|out| hsa_serializer_agents_create(ptr::null(), make, host.userdata(), out));
        let agents = agents.unwrap();
        let touched = || {
            let mut count = 77;
            let status = hsa_serializer_agents_list(agents, ptr::null_mut(), 0, &raw mut count);
            (status, count)
        };
        for (agent, comes_to) in refusals {
            for _ in 0..2 {
                let of = made(|out| hsa_serializer_agents_of(agents, agent, out));
                assert_eq!(of.err(), Some(comes_to), "{agent}");
            }
            let get = made(|out| hsa_serializer_agents_get(agents, agent, out));
            assert_eq!(get.err(), Some(HSA_SERIALIZER_UNTOUCHED), "{agent}");
            let list = [agent];
            let request = made(|out| hsa_serializer_agents_request(agents, list.as_ptr(), 1, out));
            assert_eq!(request.err(), Some(comes_to), "{agent}");
            assert_eq!(touched(), (HSA_SERIALIZER_SUCCESS, 0));
        }
        // The first of two can be made, and is not serialized for it.
        let list = [5, 1];
        let request = made(|out| hsa_serializer_agents_request(agents, list.as_ptr(), 2, out));
        assert_eq!(request.err(), Some(HSA_SERIALIZER_BAD_AGENT));
        let first = made(|out| hsa_serializer_agents_of(agents, 5, out)).unwrap();
        assert_eq!(made(|out| hsa_serializer_requests(first, out)), Ok(0));
        assert_eq!(made(|out| hsa_serializer_mode(first, out)), Ok(0));
        // Twice in a list is once more.
        let list = [5, 5];
        let request = made(|out| hsa_serializer_agents_request(agents, list.as_ptr(), 2, out));
        let ended = hsa_serializer_request_end(request.unwrap(), ptr::null_mut());
        assert_eq!(ended, HSA_SERIALIZER_SUCCESS);
        assert_eq!(made(|out| hsa_serializer_mode(first, out)), Ok(0));
        // None at all is none.
        let request = made(|out| hsa_serializer_agents_request(agents, ptr::null(), 0, out));
        let ended = hsa_serializer_request_end(request.unwrap(), ptr::null_mut());
        assert_eq!(ended, HSA_SERIALIZER_SUCCESS);
        host.refuse_signals(0, NoSignal::Null);
        let request = made(|out| hsa_serializer_agents_request_all(agents, out));
        assert_eq!(request.err(), Some(HSA_SERIALIZER_NULL_SIGNAL));
        host.refuse_nothing();
        assert_eq!(made(|out| hsa_serializer_requests(first, out)), Ok(0));
        finish(host, first);
        // Serializers of agents go with these, and not before.
        let by_itself = hsa_serializer_destroy(first);
        assert_eq!(by_itself, HSA_SERIALIZER_NOT_FINISHED);
        let destroyed = hsa_serializer_agents_destroy(agents);
        assert_eq!(destroyed, HSA_SERIALIZER_SUCCESS);
        assert_eq!(hsa_serializer_destroy(first), HSA_SERIALIZER_STALE_HANDLE);
    }
}

/// What callbacks were told.
#[derive(Debug, Default)]
struct Told(Mutex<Vec<String>>);

impl Told {
    fn userdata(&self) -> *mut c_void {
        (&raw const *self).cast_mut().cast()
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// # Safety
/// `told` is a [`Told`] that lives.
unsafe fn tell(told: *mut c_void, what: String) {
    // SAFETY: the caller's promise.
    unsafe { &*told.cast::<Told>() }
        .0
        .lock()
        .unwrap()
        .push(what);
}

/// The elements of an array that a callback was given.
///
/// # Safety
/// There are as many, or none.
unsafe fn elements<T>(array: *const T, count: usize) -> Vec<T> {
    // SAFETY: the caller's promise.
    (0..count).map(|i| unsafe { array.add(i).read() }).collect()
}

unsafe extern "C" fn on_stuck(
    told: *mut c_void,
    stuck: *const hsa_serializer_in_flight_t,
    count: usize,
) {
    // SAFETY: the array lives for the call.
    let dispatches = unsafe { elements(stuck, count) }
        .iter()
        .map(|queue| queue.dispatches)
        .collect::<Vec<_>>();
    // SAFETY: the test's.
    unsafe { tell(told, format!("stuck {dispatches:?}")) };
}

unsafe extern "C" fn on_remaining(told: *mut c_void, left: *const hsa_serializer_remaining_t) {
    // SAFETY: it lives for the call, with what it points to.
    let (left, queues) = unsafe { (*left, elements((*left).queues, (*left).queue_count)) };
    let dispatches: u64 = queues.iter().map(|queue| queue.dispatches).sum();
    let handlers = left.handlers;
    // SAFETY: the test's.
    unsafe { tell(told, format!("{dispatches} left, {handlers} handlers")) };
}

#[test]
fn who_waits_in_vain_is_told_for_what() {
    let (world, told) = (World::new(), Told::default());
    let serializer = world.serializer();
    // SAFETY: `told` lives to the end.
    unsafe {
        let drained = hsa_serializer_drain(serializer, 1, Some(on_stuck), told.userdata());
        assert_eq!(drained, HSA_SERIALIZER_TIMED_OUT);
        assert_eq!(told.take(), ["stuck [1, 1]"]);
        let (call, data) = (Some(on_remaining as _), told.userdata());
        let finished = hsa_serializer_finish_shutdown(serializer, 1, call, data);
        assert_eq!(finished, HSA_SERIALIZER_TIMED_OUT);
        let finished = hsa_serializer_try_finish_shutdown(serializer, call, data);
        assert_eq!(finished, HSA_SERIALIZER_NOT_FINISHED);
        assert_eq!(told.take(), ["2 left, 2 handlers"; 2]);
    }
}

unsafe extern "C" fn on_stall(told: *mut c_void, stall: *const hsa_serializer_stall_t) {
    // SAFETY: it lives for the call, with what it points to.
    unsafe {
        let stall = *stall;
        let waits = elements(stall.waits_for, stall.waits_for_count);
        let held = elements(stall.holds_back, stall.holds_back_count);
        let waiting = elements(stall.waiting, stall.waiting_count);
        let text = CStr::from_ptr(stall.text).to_str().expect("UTF-8");
        assert!(text.len() > 20, "{text}");
        let what = format!(
            "barrier {}, released {}, for {} ns, waits for {}, holds back {}, holder {}, waiting {}",
            stall.is_barrier,
            stall.released,
            stall.lasted_ns,
            waits.len(),
            held.len(),
            stall.holder != 0,
            waiting.len(),
        );
        tell(told, what);
    }
}

#[test]
fn stalls_are_told_by_name() {
    let (world, told) = (World::new(), Told::default());
    let (serializer, watch) = (world.serializer(), world.watch());
    dispatch(world.queues[0]).unwrap();
    let check = |watch, now| {
        let mut count = 77;
        // SAFETY: `told` lives to the end.
        let status = unsafe {
            hsa_serializer_stall_watch_check(
                watch,
                now,
                Some(on_stall),
                told.userdata(),
                &raw mut count,
            )
        };
        assert_eq!(status, HSA_SERIALIZER_SUCCESS);
        assert_eq!(count, told.0.lock().unwrap().len());
        told.take()
    };
    assert!(check(watch, 10).is_empty(), "the time starts");
    let named = "barrier true, released false, for 90 ns, waits for 2, holds back 1, holder false, waiting 0";
    assert_eq!(check(watch, 100), [named]);
    // SAFETY: the output can be written.
    let releasing =
        unsafe { made(|out| hsa_serializer_stall_watch_create(serializer, 1, 1, out)).unwrap() };
    assert!(check(releasing, 100).is_empty(), "the time starts");
    let released = named.replace("released false, for 90 ns", "released true, for 100 ns");
    assert_eq!(check(releasing, 200), [released]);
    assert_eq!(statistics(serializer).forced, 1);
}

struct Again {
    watch: hsa_serializer_stall_watch_t,
    came_to: Mutex<Option<Status>>,
}

unsafe extern "C" fn check_again(again: *mut c_void, _: *const hsa_serializer_stall_t) {
    // SAFETY: the test's, which lives.
    let again = unsafe { &*again.cast::<Again>() };
    let null = ptr::null_mut;
    // SAFETY: callbacks and outputs may be null.
    let came_to = unsafe {
        hsa_serializer_stall_watch_check(again.watch, 300, None, null(), ptr::null_mut())
    };
    *again.came_to.lock().unwrap() = Some(came_to);
    let destroyed = hsa_serializer_stall_watch_destroy(again.watch);
    assert_eq!(destroyed, HSA_SERIALIZER_SUCCESS, "it ends as it would");
}

#[test]
fn a_check_within_a_check_is_refused() {
    let world = World::new();
    dispatch(world.queues[0]).unwrap();
    let again = Again {
        watch: world.watch(),
        came_to: Mutex::default(),
    };
    let data = (&raw const again).cast_mut().cast();
    for now in [10, 100] {
        // SAFETY: `again` lives to the end.
        let checked = unsafe {
            hsa_serializer_stall_watch_check(
                again.watch,
                now,
                Some(check_again),
                data,
                ptr::null_mut(),
            )
        };
        assert_eq!(checked, HSA_SERIALIZER_SUCCESS);
    }
    assert_eq!(*again.came_to.lock().unwrap(), Some(HSA_SERIALIZER_BUSY));
}

unsafe extern "C" fn on_text(told: *mut c_void, text: *const c_char, length: usize) {
    // SAFETY: a string that lives for the call.
    let text = unsafe { CStr::from_ptr(text) };
    assert_eq!(text.count_bytes(), length);
    // SAFETY: the test's.
    unsafe { tell(told, text.to_str().expect("UTF-8").to_owned()) };
}

#[test]
fn snapshots_are_texts() {
    let (world, told) = (World::new(), Told::default());
    // SAFETY: `told` lives to the end.
    unsafe {
        let one = hsa_serializer_snapshot_text(world.serializer(), Some(on_text), told.userdata());
        assert_eq!(one, HSA_SERIALIZER_SUCCESS);
        let [text] = &told.take()[..] else {
            panic!("once")
        };
        assert!(text.contains("GPU 0x7"), "{text}");
        let all = hsa_serializer_snapshots_text(Some(on_text), told.userdata());
        assert_eq!(all, HSA_SERIALIZER_SUCCESS);
        let [all] = &told.take()[..] else {
            panic!("once")
        };
        assert!(all.matches("GPU 0x").count() >= 2, "{all}");
    }
}

unsafe extern "C" fn on_end(told: *mut c_void, outcome: u32) {
    // SAFETY: the test's.
    unsafe { tell(told, format!("{outcome}")) };
}

#[test]
fn a_barrier_s_end_is_told_once() {
    let (world, told) = (World::new(), Told::default());
    let (set, null) = (world.set(), ptr::null_mut);
    // SAFETY: `told` lives to the end; outputs can be written, or may be null.
    unsafe {
        let arm = || hsa_serializer_barrier_set_arm(set, Some(on_end), told.userdata(), null());
        assert_eq!(arm(), HSA_SERIALIZER_SUCCESS);
        assert!(told.take().is_empty());
        assert_eq!(arm(), HSA_SERIALIZER_SUCCESS);
        let superseded =
            (hsa_serializer_outcome_t::HSA_SERIALIZER_OUTCOME_SUPERSEDED as u32).to_string();
        assert_eq!(told.take(), [superseded]);
        let completed = hsa_serializer_barrier_set_complete(set, world.set_ticket);
        assert_eq!(completed, HSA_SERIALIZER_SUCCESS);
        let cleared = (hsa_serializer_outcome_t::HSA_SERIALIZER_OUTCOME_CLEARED as u32).to_string();
        assert_eq!(told.take(), [cleared]);
    }
}

#[test]
fn a_barrier_that_is_refused_a_signal_tells_no_end() {
    let (world, told) = (World::new(), Told::default());
    world.host.refuse_signals(0, NoSignal::Null);
    // SAFETY: `told` lives to the end.
    let armed = unsafe {
        hsa_serializer_barrier_set_arm(world.set(), Some(on_end), told.userdata(), ptr::null_mut())
    };
    assert_eq!(armed, HSA_SERIALIZER_NULL_SIGNAL);
    assert!(told.take().is_empty());
}

#[test]
fn events_and_reports_are_told() {
    let host = Host::new();
    let serializer = serializer(host);
    let queue = add_queue(serializer).unwrap();
    // SAFETY: the output may be null.
    let enabled = unsafe { hsa_serializer_enable(serializer, ptr::null_mut()) };
    assert_eq!(enabled, HSA_SERIALIZER_SUCCESS);
    let dispatched = dispatch(queue).unwrap();
    assert!(dispatched.serialized);
    host.gets_ready(id(queue));
    let completed = hsa_serializer_complete(serializer, dispatched.ticket);
    assert_eq!(completed, HSA_SERIALIZER_SUCCESS);
    // It is not granted, and yet it is over: misuse, and everything is let through.
    let dispatched = dispatch(queue).unwrap();
    let completed = hsa_serializer_complete(serializer, dispatched.ticket);
    assert_eq!(completed, HSA_SERIALIZER_SUCCESS);
    assert_eq!(
        hsa_serializer_queue_destroyed(queue),
        HSA_SERIALIZER_SUCCESS
    );
    let state = host.state();
    for kind in [
        HSA_SERIALIZER_EVENT_TRANSITION,
        HSA_SERIALIZER_EVENT_QUEUE_ADDED,
        HSA_SERIALIZER_EVENT_READY,
        HSA_SERIALIZER_EVENT_GRANTED,
        HSA_SERIALIZER_EVENT_RELEASED,
        HSA_SERIALIZER_EVENT_LET_THROUGH,
        HSA_SERIALIZER_EVENT_QUEUE_GONE,
    ] {
        let told = state.events.contains(&(kind as u32));
        assert!(told, "{kind:?} is not among {:?}", state.events);
    }
    let reports: Vec<u32> = state.reports.iter().map(|(kind, _)| *kind).collect();
    let expected = [
        HSA_SERIALIZER_REPORT_COMPLETION_NOT_GRANTED,
        HSA_SERIALIZER_REPORT_RELEASED,
    ];
    assert_eq!(
        reports,
        expected.map(|kind| kind as u32),
        "{:?}",
        state.reports
    );
    assert!(state.reports.iter().all(|(_, text)| text.len() > 10));
    drop(state);
    end(host, serializer);
    host.assert_no_violations();
}

/// A host that does not want to know.
#[test]
fn reports_and_events_need_nobody() {
    let host = Host::new();
    let mut runtime = host.runtime();
    (runtime.report, runtime.event, runtime.is_handler_thread) = (None, None, None);
    // SAFETY: outputs can be written.
    let serializer =
        unsafe { made(|out| hsa_serializer_create(ptr::null(), &raw const runtime, out)).unwrap() };
    let queue = add_queue(serializer).unwrap();
    // SAFETY: the output may be null.
    let enabled = unsafe { hsa_serializer_enable(serializer, ptr::null_mut()) };
    assert_eq!(enabled, HSA_SERIALIZER_SUCCESS);
    let ticket = dispatch(queue).unwrap().ticket;
    let completed = hsa_serializer_complete(serializer, ticket);
    assert_eq!(completed, HSA_SERIALIZER_SUCCESS);
    assert_eq!(
        hsa_serializer_queue_destroyed(queue),
        HSA_SERIALIZER_SUCCESS
    );
    end(host, serializer);
    let state = host.state();
    assert!(state.reports.is_empty() && state.events.is_empty());
}
