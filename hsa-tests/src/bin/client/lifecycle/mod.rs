//! Beginning, end, and what goes wrong between: scenarios of the crate's serializer alone.

mod circle;
mod exit;
mod fork;
mod gap;
mod late;
mod release;
mod shutdown;

use crate::bench::Options;
use anyhow::{Context, Result};
use clap::Subcommand;
use hsa_sys::SignalCondition;
use hsa_tests::calls::CallId;
use hsa_tests::hsa::Hsa;
use hsa_tests::setup::Ours;
use serde_json::Value;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

#[derive(Subcommand)]
pub(crate) enum Scenario {
    /// The kill switch, with kernels that wait in every state, and a host that hears of nothing.
    Release(release::Arguments),
    /// Both phases of the shutdown under load, and every way in which it does not come to its end.
    Shutdown(shutdown::Arguments),
    /// The process ends with work in its queues, and nobody calls anything before.
    Exit(exit::Arguments),
    /// Threads that end when the runtime is gone.
    Late(late::Arguments),
    /// The process forks under load; its children end as they like.
    Fork(fork::Arguments),
    /// Work that the profiler did not see: queues from before it came, and times in which it did not
    /// look.
    Gap(gap::Arguments),
    /// Programs that serialization deadlocks.
    Circle(circle::Arguments),
}

impl Scenario {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Release(_) => "release",
            Self::Shutdown(_) => "shutdown",
            Self::Exit(_) => "exit",
            Self::Late(_) => "late",
            Self::Fork(_) => "fork",
            Self::Gap(_) => "gap",
            Self::Circle(_) => "circle",
        }
    }

    pub(crate) fn run(&self, options: &Options<Ours>) -> Result<Value> {
        match self {
            Self::Release(arguments) => release::run(arguments, options),
            Self::Shutdown(arguments) => shutdown::run(arguments, options),
            Self::Exit(arguments) => exit::run(arguments, options),
            Self::Late(arguments) => late::run(arguments, options),
            Self::Fork(arguments) => fork::run(arguments, options),
            Self::Gap(arguments) => gap::run(arguments, options),
            Self::Circle(arguments) => circle::run(arguments, options),
        }
    }
}

/// Calls on the thread that calls the runtime's handlers, and waits for the answer. The host's own store
/// wakes that thread, even where the GPU's interrupts are dead.
fn on_handlers_thread<T: Send + 'static>(
    hsa: &Hsa,
    call: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let signal = hsa.create_interrupt(1)?;
    let (answer, answered) = mpsc::channel();
    let call = Mutex::new(Some((call, answer)));
    let id = CallId::of(Arc::new(move |_| {
        let taken = call.lock().ok().and_then(|mut call| call.take());
        if let Some((call, answer)) = taken {
            let _ = answer.send(call());
        }
        false
    }));
    hsa.on_signal(signal, SignalCondition::Lt, 1, id)?;
    hsa.store(signal, 0);
    let answer = answered.recv_timeout(Duration::from_secs(20));
    hsa.destroy_signal(signal)?;
    answer.context("the handler was not called")
}
