//! Exploring one model: as it is, or without one of its guards.

use hsa_serializer::{Step, remove_guard};
use loom::model::Builder;
use std::fmt;
use std::panic::PanicHookInfo;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Steps of one execution after which it is taken for endless.
const MAX_BRANCHES: usize = 20_000;

/// Something that a protocol does, and that can be taken away.
pub trait Guard: Copy + fmt::Debug + Send + Sync + 'static {
    /// Takes one away for all models that this thread runs from now on, or puts all back.
    fn remove(guard: Option<Self>);
}

impl Guard for Step {
    fn remove(guard: Option<Self>) {
        remove_guard(guard);
    }
}

/// A model and its negative controls.
#[derive(Clone, Copy, Debug)]
pub struct Model<G: Guard = Step> {
    /// What the table calls it.
    pub name: &'static str,
    /// How many preemptions are explored.
    pub bound: usize,
    /// The same in the quick set.
    pub quick: usize,
    /// One execution.
    pub run: fn(),
    /// Guards, and a part of what must be said when the guard is gone.
    pub controls: &'static [(G, &'static str)],
}

/// What a child process says first when the model fails, and when it holds.
pub(crate) const FAILED: &str = "failed";
pub(crate) const HELD: &str = "held";

/// Executions begun by this process.
static EXECUTIONS: AtomicUsize = AtomicUsize::new(0);

/// A model, whosever guards it takes away.
pub trait Explored: Sync {
    /// What the table calls it.
    fn name(&self) -> &'static str;

    /// How many preemptions are explored: in the quick set, or else.
    fn bound(&self, quick: bool) -> usize;

    /// The names of its guards, and what must be said when each is gone.
    fn controls(&self) -> Vec<(String, &'static str)>;

    /// Explores the model and says how that went, as the only thing that this process does.
    ///
    /// It leaves from within the panic: what a failed execution leaves behind can't be cleared
    /// away outside of the model, and would abort the process with another message.
    fn explore_and_exit(&self, without: &str, bound: usize) -> !;
}

impl<G: Guard> Explored for Model<G> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn bound(&self, quick: bool) -> usize {
        if quick { self.quick } else { self.bound }
    }

    fn controls(&self) -> Vec<(String, &'static str)> {
        let named = |(guard, said): &(G, &'static str)| (format!("{guard:?}"), *said);
        self.controls.iter().map(named).collect()
    }

    fn explore_and_exit(&self, without: &str, bound: usize) -> ! {
        let guards = self.controls.iter().map(|(guard, _)| *guard);
        G::remove(
            guards
                .into_iter()
                .find(|guard| format!("{guard:?}") == without),
        );
        std::panic::set_hook(Box::new(|info: &PanicHookInfo<'_>| {
            let payload = info.payload();
            let message = payload
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| payload.downcast_ref::<&str>().copied())
                .unwrap_or("a panic without a message");
            let line = message.lines().next().unwrap_or_default();
            println!("{FAILED}|{}|{line}", EXECUTIONS.load(Ordering::Relaxed));
            process::exit(0);
        }));
        let mut builder = Builder::new();
        builder.preemption_bound = Some(bound);
        builder.max_branches = MAX_BRANCHES;
        builder.expect_explicit_explore = true;
        // These would end the exploration silently, or begin it in the middle; the environment can
        // set them. (`limits` sees that it does not.)
        builder.max_permutations = None;
        builder.max_duration = None;
        builder.checkpoint_file = None;
        let run = self.run;
        builder.check(move || {
            EXECUTIONS.fetch_add(1, Ordering::Relaxed);
            run();
        });
        println!("{HELD}|{}|", EXECUTIONS.load(Ordering::Relaxed));
        process::exit(0);
    }
}
