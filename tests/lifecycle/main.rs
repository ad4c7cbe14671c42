//! Beginning, end, and everything that goes wrong between: the lines of docs/scenarios.md that are about a
//! serializer's life, each test named after its line, on the emulated GPU in virtual time and on
//! threads, and in processes that fork and exit.
//!
//! Lines that are about a transition or a queue alone are in `tests/scenarios`; where the lifecycle
//! adds to one of those, what it adds is here.
//!
//! | module | holds |
//! |---|---|
//! | `shutdown` | the two phases, at any moment; what is left when time is over |
//! | `ending` | the same on threads: from handlers, from several threads at once, the last handle |
//! | `leaving` | leaving everything as it is |
//! | `kill_switch` | letting everything through, by the host or because of misuse |
//! | `drain` | waiting for what is in flight and for nothing else |
//! | `gap` | work that passed unseen |
//! | `stalls`, `overtaken` | programs that serialization deadlocks: named, released, exact again |
//! | `removal` | queues that go, at any moment and by thousands |
//! | `process`, `fork` | the end of processes and threads; children |
//! | `reentrancy`, `storm` | what may be called from where; timers that interrupt everything |
//! | `diagnostics` | looking at everything at any time |
//! | `script` | a run through every state of a queue, to be interrupted between any two steps |
//! | `busy`, `guarded`, `child`, `pinned` | work without a GPU; a runtime that notices who calls it; processes of their own; foreign pins |
//!
//! A test that asks for the mode within every allocation has an allocator, and so a target, of its own:
//! `tests/wrapped_malloc.rs`.
//!
//! `LIFECYCLE_BACKLOG` (20,000 by default) says how many completions nobody has heard of when a
//! shutdown begins; line 65 wants 1,000,000.

#[path = "../common/mod.rs"]
mod common;

use common::{spy, stage};

mod busy;
mod child;
mod diagnostics;
mod drain;
mod ending;
mod fork;
mod gap;
mod guarded;
mod kill_switch;
mod leaving;
mod overtaken;
mod pinned;
mod process;
mod reentrancy;
mod removal;
mod script;
mod shutdown;
mod stalls;
mod storm;
