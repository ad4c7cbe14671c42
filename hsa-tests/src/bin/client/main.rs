//! Test applications: each subcommand is a scenario on AMD's real runtime, over the emulated GPU.
//!
//! A scenario prints one line of JSON and exits with 0; with 1 where a check failed (`error` says
//! which); with 3 where it stands still, and then who waits for whom is on standard error. How to run
//! one by hand is in `hsa-tests/README.md`.

mod across;
mod batches;
mod bench;
mod churn;
mod drive;
mod events;
mod faults;
mod handlers;
mod lifecycle;
mod load;
mod plain;
mod rounds;
mod seed;
mod soak;

use anyhow::bail;
use bench::Options;
use clap::{Parser, Subcommand, ValueEnum};
use harness::BoxError;
use hsa_tests::lifecycle::Lifecycle;
use hsa_tests::setup::{Fault, Parts};
use hsa_tests::watchdog;
use locked::Retire;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Parser)]
#[command(about = "Scenarios on AMD's real HSA runtime, over the emulated GPU")]
struct Arguments {
    /// The serializer.
    #[arg(long, global = true, value_enum, default_value = "crate")]
    policy: Policy,
    /// A mistake for the profiler to make, which the checks have to find in the scenarios that it
    /// names.
    #[arg(long, global = true, value_enum)]
    fault: Option<Fault>,
    /// A packet of the profiler's own stands behind each kernel.
    #[arg(long, global = true)]
    tail: bool,
    /// Nothing may stand still for so many seconds.
    #[arg(long, global = true, default_value_t = 30.0, value_parser = seconds)]
    patience: f64,
    /// The scenario's own choices come from it.
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,
    #[command(subcommand)]
    scenario: Scenario,
}

/// A length of time that a thread can wait for.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|s| (0.0..=1e6).contains(s));
    found.ok_or_else(|| "must be a number of seconds, 0 to 1000000".to_owned())
}

/// A number of things of which there has to be one.
pub(crate) fn some(text: &str) -> Result<usize, String> {
    let found = text.parse().ok().filter(|n| (1..=10_000).contains(n));
    found.ok_or_else(|| "must be a whole number, 1 to 10000".to_owned())
}

/// Which serializer the profiler has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// The crate's.
    Crate,
    /// The yardstick under locks, as it was before its fix.
    Eager,
    /// The yardstick with its fix.
    Drained,
}

#[derive(Subcommand)]
enum Scenario {
    /// The fault that the crate exists to end: a recycled handle under an unexecuted packet.
    Seed(seed::Arguments),
    /// Full rate on several agents, queues and threads, while others toggle.
    Load(load::Arguments),
    /// Queues that are destroyed at every awkward moment.
    Churn(churn::Arguments),
    /// Batches as long as the ring.
    Batches(batches::Arguments),
    /// The runtime initialized and shut down again and again.
    Rounds(rounds::Arguments),
    /// The runtime shut down under live queues.
    ShutdownLive(rounds::LiveArguments),
    /// What handlers may do: late, repeated, on destroyed signals.
    Handlers(handlers::Arguments),
    /// Signals stay few over many transitions; a transition that gets none does not happen.
    Events(events::Arguments),
    /// Kernels that end badly, and queues that stop because of a fault.
    Faults(faults::Arguments),
    /// Kernels that wait for kernels of another agent.
    Across(across::Arguments),
    /// An application that knows of no profiler; the test tool may be one.
    Plain(plain::Arguments),
    /// Full rate for long: memory and signals stay flat.
    Soak(soak::Arguments),
    #[command(flatten)]
    Lifecycle(lifecycle::Scenario),
}

impl Scenario {
    fn name(&self) -> &'static str {
        match self {
            Self::Seed(_) => "seed",
            Self::Load(_) => "load",
            Self::Churn(_) => "churn",
            Self::Batches(_) => "batches",
            Self::Rounds(_) => "rounds",
            Self::ShutdownLive(_) => "shutdown-live",
            Self::Handlers(_) => "handlers",
            Self::Events(_) => "events",
            Self::Faults(_) => "faults",
            Self::Across(_) => "across",
            Self::Plain(_) => "plain",
            Self::Soak(_) => "soak",
            Self::Lifecycle(scenario) => scenario.name(),
        }
    }

    fn run<S: Lifecycle>(&self, options: &Options<S>) -> anyhow::Result<Value> {
        match self {
            Self::Seed(arguments) => seed::run(arguments, options),
            Self::Load(arguments) => load::run(arguments, options),
            Self::Churn(arguments) => churn::run(arguments, options),
            Self::Batches(arguments) => batches::run(arguments, options),
            Self::Rounds(arguments) => rounds::run(arguments, options),
            Self::ShutdownLive(arguments) => rounds::run_live(arguments, options),
            Self::Handlers(arguments) => handlers::run(arguments, options),
            Self::Events(arguments) => events::run(arguments, options),
            Self::Faults(arguments) => faults::run(arguments, options),
            Self::Across(arguments) => across::run(arguments, options),
            Self::Plain(arguments) => plain::run(arguments),
            Self::Soak(arguments) => soak::run(arguments, options),
            Self::Lifecycle(_) => bail!("the yardstick does nothing of that"),
        }
    }
}

impl Arguments {
    fn options<S>(
        &self,
        make: impl Fn(Parts) -> Result<S, BoxError> + Send + Sync + 'static,
    ) -> Options<S> {
        Options {
            make: Arc::new(make),
            policy: self.policy,
            tail: self.tail,
            fault: self.fault,
            seed: self.seed,
        }
    }

    fn run(&self) -> anyhow::Result<Value> {
        let locked = |retire| {
            let make = move |parts: Parts| Ok(parts.locked(retire));
            self.scenario.run(&self.options(make))
        };
        match self.policy {
            Policy::Crate => {
                let options = self.options(Parts::ours);
                match &self.scenario {
                    Scenario::Lifecycle(scenario) => scenario.run(&options),
                    scenario => scenario.run(&options),
                }
            }
            Policy::Eager => locked(Retire::Eager),
            Policy::Drained => locked(Retire::Drained),
        }
    }
}

fn main() {
    let arguments = Arguments::parse();
    let name = arguments.scenario.name();
    // A thread that fails must not leave the others waiting for it.
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        watchdog::exit(
            &json!({ "scenario": name, "ok": false, "error": panic.to_string() }),
            1,
        );
    }));
    watchdog::start(name, Duration::from_secs_f64(arguments.patience));
    let start = Instant::now();
    let mut line = json!({ "scenario": name });
    let outcome = arguments.run();
    let (said, code) = match outcome {
        Ok(said) => (said, 0),
        Err(e) => (json!({ "error": format!("{e:#}") }), 1),
    };
    line["ok"] = json!(code == 0);
    line["seconds"] = json!(start.elapsed().as_secs_f64());
    if let (Value::Object(line), Value::Object(said)) = (&mut line, said) {
        line.extend(said);
    }
    println!("{line}");
    // An ordinary end, with what the runtime does at an exit.
    std::process::exit(code)
}
