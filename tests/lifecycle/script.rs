//! A short run in virtual time that goes through every state of a queue, and that can be stopped
//! between any two of its steps for something to be put in.

use crate::stage::{Expect, Rig, Virtual, short};
use hsa_sys::hsa_signal_t;
use softgpu::{Config, Queue, QueueState};
use std::collections::HashSet;
use std::ops::Range;

/// What the host does, in order, while the GPU takes its steps.
#[derive(Clone, Copy)]
enum Act {
    Submit(usize, usize),
    Toggle(bool),
}

use Act::{Submit, Toggle};

const ACTS: [Act; 16] = [
    Submit(0, 2),
    Submit(1, 1),
    Toggle(true),
    Submit(0, 1),
    Submit(1, 2),
    Submit(2, 1),
    Toggle(false),
    Submit(2, 1),
    Submit(0, 1),
    Toggle(true),
    Submit(1, 1),
    Submit(2, 2),
    Toggle(false),
    Toggle(true),
    Submit(0, 1),
    Submit(1, 1),
];

const KERNELS: i64 = 14;

/// The host does something after so many steps of the GPU.
const PACE: u64 = 5;

pub(crate) const SEEDS: Range<u64> = 0..4;

pub(crate) struct Script {
    pub(crate) v: Virtual,
    pub(crate) queues: [Queue; 3],
    pub(crate) done: hsa_signal_t,
    /// Whether the host refuses what the application submits.
    pub(crate) refuses: bool,
    submitted: usize,
    acts: usize,
    moves: u64,
}

impl Script {
    pub(crate) fn new(seed: u64) -> Self {
        let v = Virtual::with(Config {
            signals: 512,
            ..Config::seed(seed)
        });
        let queues = [v.queue(), v.queue(), v.queue()];
        let done = v.signal(KERNELS);
        Self {
            v,
            queues,
            done,
            refuses: false,
            submitted: 0,
            acts: 0,
            moves: 0,
        }
    }

    /// The run of that seed, so many moves on; `None` if it is over before.
    pub(crate) fn at(seed: u64, moment: u64) -> Option<Self> {
        let mut script = Self::new(seed);
        (0..moment).all(|_| script.moves_on()).then_some(script)
    }

    /// One move, of the host or of the GPU. False if there is none left.
    pub(crate) fn moves_on(&mut self) -> bool {
        self.moves += 1;
        if self.acts < ACTS.len() && self.moves % PACE == 0 {
            self.acts_once();
            return true;
        }
        self.v.step() || self.acts < ACTS.len()
    }

    fn acts_once(&mut self) {
        match ACTS[self.acts] {
            Submit(..) if self.refuses => {}
            Submit(queue, kernels) => {
                let queue = &self.queues[queue];
                let outcome = queue.submit(&vec![short(self.done).packet(); kernels]);
                let gone = queue.state() == QueueState::Destroyed;
                assert_eq!(outcome.is_err(), gone);
                self.submitted += if gone { 0 } else { kernels };
            }
            Toggle(on) => toggle_if_open(self.v.rig(), on),
        }
        self.acts += 1;
    }

    /// The host does the rest of what it has to do, and the GPU all that it can.
    pub(crate) fn rest(&mut self) {
        while self.acts < ACTS.len() {
            self.moves_on();
        }
        self.v.idle();
    }

    pub(crate) fn submitted(&self) -> usize {
        self.submitted
    }

    /// How many kernels the application knows to have ended.
    pub(crate) fn ended(&self) -> usize {
        (KERNELS - self.v.load(self.done)) as usize
    }

    /// Every kernel has ended, and the application knows.
    pub(crate) fn assert_done(&self) {
        assert_eq!(self.ended(), self.submitted());
    }

    /// The application lets go of its queues. What was passed on may have run beside anything.
    pub(crate) fn ends(self) {
        let overlaps = self.v.rig().passed_on() > 0;
        let misuse = 0;
        self.end(Expect { misuse, overlaps });
    }

    pub(crate) fn end(self, expect: Expect) -> crate::stage::End {
        self.v.finish_as(expect, self.queues)
    }
}

fn toggle_if_open(rig: &Rig, on: bool) {
    // Fails where the serializer was shut down meanwhile.
    let _ = if on { rig.enable() } else { rig.disable() };
}

/// Each moment of each of the runs.
pub(crate) fn everywhere(mut at: impl FnMut(Script)) {
    let mut moments = HashSet::new();
    for seed in SEEDS {
        for moment in 0.. {
            let Some(script) = Script::at(seed, moment) else {
                break;
            };
            moments.insert(moment);
            at(script);
        }
    }
    assert!(moments.len() > 100, "only {} moments", moments.len());
}
