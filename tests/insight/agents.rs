//! Agents: some, all, and those that come later.

use crate::host::{Rig, halt, in_time};
use crate::lane::Lane;
use hsa_serializer::doc_runtime::Failure;
use hsa_serializer::{
    AgentError, Agents, Mode, Serializer, SignalError, Transition, TransitionError,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

/// Each with a runtime of its own.
struct All {
    agents: Agents<Rig>,
    rigs: Vec<Rig>,
}

impl All {
    fn new(n: usize) -> Self {
        let rigs: Vec<_> = (0..n).map(|_| Rig::default()).collect();
        let of = rigs.clone();
        let agents = Agents::new(move |agent| {
            let builder = Serializer::<Rig>::builder().agent(agent);
            builder.build(of[agent as usize].clone())
        });
        Self { agents, rigs }
    }

    fn mode(&self, agent: u64) -> Option<Mode> {
        self.agents.get(agent).map(Serializer::mode)
    }

    fn modes<const N: usize>(&self) -> [bool; N] {
        std::array::from_fn(|agent| self.mode(agent as u64) == Some(Mode::Enabled))
    }

    fn finish(self) {
        drop(self.agents);
        for rig in self.rigs {
            rig.is_left_by_all();
        }
    }
}

#[test]
fn s11_each_agent_is_on_for_its_own_requests_alone() {
    let all = All::new(2);
    all.agents.of(1).unwrap();
    let a = all.agents.request([0]).unwrap();
    let b = all.agents.request([0]).unwrap();
    assert_eq!(all.modes(), [true, false]);
    drop(a);
    assert_eq!(all.modes(), [true, false]);
    let both = all.agents.request([0, 1]).unwrap();
    drop(b);
    assert_eq!(all.modes(), [true, true]);
    drop(both);
    assert_eq!(all.modes(), [false, false]);
    let transitions = |agent| all.agents.get(agent).unwrap().statistics().transitions;
    assert_eq!([0, 1].map(transitions), [2, 2]);
    all.finish();
}

#[test]
fn s20_what_was_requested_before_there_is_any_agent_holds_for_those_that_come() {
    for toggles in 0..16_u32 {
        let all = All::new(2);
        let mut requests = Vec::new();
        for bit in 0..4 {
            if toggles >> bit & 1 == 1 {
                requests.push(all.agents.request_all().unwrap());
            } else {
                requests.pop();
            }
        }
        let on = !requests.is_empty();
        assert_eq!((all.mode(0), all.agents.iter().count()), (None, 0));
        let mut lane = Lane::new(all.agents.of(0).unwrap());
        assert_eq!(lane.dispatch(), on);
        lane.end();
        assert_eq!(all.modes(), [on, false]);
        requests.clear();
        assert!(!lane.dispatch());
        lane.end();
        lane.destroy();
        all.finish();
    }
}

#[test]
fn requests_of_all_some_and_one_and_the_switch_do_not_know_of_each_other() {
    let all = All::new(3);
    let one = all.agents.of(0).unwrap();
    one.enable().unwrap();
    let everybody = all.agents.request_all().unwrap();
    let some = all.agents.request([1]).unwrap();
    assert_eq!(all.agents.requests_of_all(), 1);
    all.agents.of(2).unwrap();
    assert_eq!(all.modes(), [true, true, true]);
    assert_eq!(
        [0, 1, 2].map(|agent| all.agents.get(agent).unwrap().requests()),
        [1, 2, 1]
    );
    let second = all.agents.get(1).unwrap();
    assert_eq!(second.disable(), Ok(Transition::Kept { requests: 2 }));
    drop(everybody);
    assert_eq!(all.modes(), [true, true, false]);
    assert_eq!(second.disable(), Ok(Transition::Kept { requests: 1 }));
    drop(some);
    one.disable().unwrap();
    assert_eq!(all.modes(), [false, false, false]);
    all.finish();
}

#[test]
fn where_one_agent_gets_no_signal_nothing_is_requested_of_any() {
    let all = All::new(3);
    for agent in 0..3 {
        all.agents.of(agent).unwrap();
    }
    all.rigs[1].host().fail_creations(Some(Failure::NullHandle));
    let error = AgentError {
        agent: 1,
        reason: TransitionError::Signal(SignalError::NullHandle),
    };
    assert_eq!(all.agents.request_all().map(|_| ()), Err(error));
    assert_eq!(all.agents.request([0, 1, 2]).map(|_| ()), Err(error));
    assert_eq!(all.modes(), [false, false, false]);
    assert_eq!(all.agents.requests_of_all(), 0);
    all.rigs[1].host().fail_creations(None);
    drop(all.agents.request_all().unwrap());
    all.finish();
}

#[test]
fn an_agent_that_could_not_inherit_is_not_found_until_it_can() {
    let all = All::new(1);
    let request = all.agents.request_all().unwrap();
    all.rigs[0].host().fail_creations(Some(Failure::NullHandle));
    assert!(all.agents.of(0).is_err());
    assert!(all.agents.get(0).is_none(), "it would run unserialized");
    assert_eq!(all.agents.iter().count(), 1);
    assert!(all.agents.of(0).is_err());
    all.rigs[0].host().fail_creations(None);
    assert_eq!(all.agents.of(0).unwrap().mode(), Mode::Enabled);
    assert_eq!(all.modes(), [true]);
    drop(request);
    assert_eq!(all.modes(), [false]);
    all.finish();
}

#[test]
fn an_agent_that_has_ended_keeps_nobody_from_requesting_all() {
    let all = All::new(3);
    let ended = all.agents.of(0).unwrap();
    ended.release_all();
    all.agents.of(1).unwrap();
    let request = all.agents.request_all().unwrap();
    assert_eq!(all.modes(), [false, true, false]);
    all.agents.of(2).unwrap();
    assert_eq!(all.modes(), [false, true, true]);
    assert_eq!(
        all.agents.request([0]).unwrap_err().reason,
        TransitionError::ShutDown
    );
    drop(request);
    assert_eq!(all.modes(), [false, false, false]);
    all.finish();
}

#[test]
#[should_panic(expected = "a serializer is one agent's")]
fn a_serializer_is_one_agents() {
    let s = crate::host::serializer(&Rig::default());
    let agents = Agents::new(move |_| s.clone());
    agents.of(0).unwrap();
    let _ = agents.of(1);
}

#[test]
fn of_several_who_touch_an_agent_first_all_get_the_same_one_and_the_others_leave_no_trace() {
    const THREADS: usize = 4;
    let mut lost = 0;
    for _ in 0..200 {
        let made = Arc::new(AtomicU64::new(0));
        let rig = Rig::default();
        let agents = {
            let (rig, made) = (rig.clone(), made.clone());
            Agents::new(move |_| {
                made.fetch_add(1, SeqCst);
                thread::yield_now();
                crate::host::serializer(&rig)
            })
        };
        let request = agents.request_all().unwrap();
        let start = Barrier::new(THREADS);
        let found: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        let s = agents.of(9).unwrap();
                        assert_eq!(s.mode(), Mode::Enabled, "it has inherited");
                        std::ptr::from_ref(s).addr()
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert_eq!(found, [found[0]; THREADS]);
        assert_eq!(agents.iter().count(), 1);
        lost += made.load(SeqCst) - 1;
        // Somebody was pinned when the barrier went, where a thread was interrupted.
        for _ in 0..3 {
            agents.get(9).unwrap().collect();
        }
        // Signals of one serializer: the barrier's went, since nothing was in flight.
        assert_eq!(rig.host().live_signals(), 1);
        drop(request);
        drop(agents);
        rig.is_left_by_all();
    }
    assert!(lost > 0, "nobody lost the race");
}

/// A thread hangs inside of the first agent's transition, under its lock. Everybody else goes on: look-ups,
/// first touches, transitions, dispatches and completions of seven agents whose kernels each wait for the
/// next agent's.
#[test]
fn s39_no_agent_waits_for_another_one_that_hangs_in_a_transition() {
    const AGENTS: u64 = 8;
    in_time(|| {
        let all = Arc::new(All::new(AGENTS as usize));
        let (stop, is_inside, go) = halt();
        let hanging = all.agents.of(0).unwrap().clone();
        hanging.enable().unwrap();
        let hangs = AtomicBool::new(true);
        // The barrier that nobody waits for clears under the lock.
        all.rigs[0].on_store(move |_| {
            if hangs.swap(false, SeqCst) {
                stop();
            }
        });
        let transition = thread::spawn(move || hanging.disable().unwrap());
        is_inside.recv().unwrap();
        assert!(all.agents.get(0).unwrap().snapshot().in_transition);
        // Agent n's kernel ends when agent n + 1's has, which is dispatched after it: all of them at
        // once, each by a thread of its own.
        let ended: Vec<_> = (0..=AGENTS).map(|_| AtomicBool::new(false)).collect();
        ended[AGENTS as usize].store(true, SeqCst);
        thread::scope(|scope| {
            for agent in 1..AGENTS {
                let (all, ended) = (&all, &ended);
                scope.spawn(move || {
                    let _request = all.agents.request([agent]).unwrap();
                    assert!(all.agents.get(0).is_some());
                    let mut lane = Lane::new(all.agents.of(agent).unwrap());
                    for _ in 0..50 {
                        assert!(lane.dispatch());
                    }
                    assert!(lane.reach());
                    while !ended[agent as usize + 1].load(SeqCst) {
                        thread::sleep(Duration::from_micros(50));
                    }
                    for _ in 0..50 {
                        lane.end();
                    }
                    ended[agent as usize].store(true, SeqCst);
                    lane.destroy();
                });
            }
        });
        assert_eq!(all.modes(), [false; AGENTS as usize]);
        go.send(()).unwrap();
        transition.join().unwrap();
        all.rigs[0].let_go();
        Arc::into_inner(all).unwrap().finish();
    });
}
