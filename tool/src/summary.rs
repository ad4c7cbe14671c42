//! What is said at the process's end: of all its rounds of starting the runtime and shutting it down.

use crate::profiler::Counts;
use crate::{lock, signals};
use hsa_serializer::{Statistics, Ticket};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

macro_rules! figures {
    (
        summed { $($(#[$sum_doc:meta])* $sum:ident,)* }
        most { $($(#[$most_doc:meta])* $most:ident,)* }
    ) => {
        /// What was counted. Times are in nanoseconds.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct Figures {
            $($(#[$sum_doc])* pub(crate) $sum: u64,)*
            $($(#[$most_doc])* pub(crate) $most: u64,)*
        }

        impl Figures {
            /// Adds others': of another GPU, or of another round.
            pub(crate) fn add(&mut self, others: &Self) {
                $(self.$sum += others.$sum;)*
                $(self.$most = self.$most.max(others.$most);)*
            }
        }
    };
}

figures! {
    summed {
        /// Kernels that were intercepted.
        kernels,
        serialized,
        /// As they were: no signal was left, or the serializer had ended.
        passed_on,
        ended,
        /// With their queues.
        lost,
        /// Ended, and nobody knows when they ran.
        untimed,
        /// Kernels that began before another one had ended, one of the two being serialized.
        overlaps,
        /// For how long serialized kernels ran.
        ran,
        transitions,
        forced,
        overtaken,
        misuse,
        /// For how long queues stood ready.
        waited,
    }
    most {
        gpus,
        waited_most,
        /// For how long a transition held back what came after it.
        held_back_most,
    }
}

impl From<&Statistics> for Figures {
    fn from(of: &Statistics) -> Self {
        Self {
            transitions: of.transitions,
            forced: of.forced,
            overtaken: of.overtaken,
            misuse: of.misuse,
            waited: of.token_waited,
            waited_most: of.token_waited_most,
            held_back_most: of.barriers_armed_most,
            ..Self::default()
        }
    }
}

impl From<&Counts> for Figures {
    fn from(of: &Counts) -> Self {
        Self {
            kernels: of.kernels.load(Relaxed),
            serialized: of.serialized.load(Relaxed),
            passed_on: of.passed_on.load(Relaxed),
            ended: of.ended.load(Relaxed),
            lost: of.lost.load(Relaxed),
            untimed: of.untimed.load(Relaxed),
            ran: of.ran.load(Relaxed),
            ..Self::default()
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = Duration::from_nanos;
        let (kernels, serialized, gpus) = (self.kernels, self.serialized, self.gpus);
        write!(
            f,
            "kernels: {kernels}, {serialized} of them serialized; GPUs: {gpus}"
        )?;
        let ended = self.passed_on + self.ended + self.lost;
        for (number, what) in [
            (self.lost, "went with their queues"),
            (self.passed_on, "were passed on as they were"),
            (self.kernels.saturating_sub(ended), "had not ended"),
            (self.untimed, "have no times, and are not in the trace"),
        ] {
            if number > 0 {
                write!(f, "; {number} {what}")?;
            }
        }
        let (overlaps, transitions) = (self.overlaps, self.transitions);
        write!(
            f,
            "\noverlaps: {overlaps} (kernels that ran beside a serialized one)"
        )?;
        let (forced, overtaken) = (self.forced, self.overtaken);
        if forced + overtaken > 0 {
            write!(
                f,
                "; stalls released: {forced} transitions, {overtaken} turns"
            )?;
        }
        let held = time(self.held_back_most);
        write!(
            f,
            "\ntransitions: {transitions}; one held kernels back for {held:.1?} at most"
        )?;
        let (waited, most) = (time(self.waited), time(self.waited_most));
        write!(
            f,
            "\nwaiting: queues stood ready for {waited:.1?} in all, {most:.1?} at most"
        )?;
        // From being ready to their end kernels have waited for their turn, and run.
        let (ran, took) = (time(self.ran), (self.waited + self.ran).max(1));
        let share = 100.0 * self.waited as f64 / took as f64;
        write!(
            f,
            "\ncost: serialized kernels ran for {ran:.1?}; {share:.1} % of what they took was waiting"
        )?;
        let (misuse, tickets) = (self.misuse, Ticket::lost());
        if misuse + tickets > 0 {
            write!(
                f,
                "\nFAULT of this tool: {misuse} misuses, {tickets} lost tickets"
            )?;
        }
        Ok(())
    }
}

/// What all rounds have added up to.
struct Total {
    quiet: bool,
    trace: PathBuf,
    /// None before the first round has ended.
    figures: Option<Figures>,
}

static TOTAL: Mutex<Option<Total>> = Mutex::new(None);

/// There is something to say at the process's end, unless that is not wanted.
pub(crate) fn begin(quiet: bool, trace: &Path) {
    lock(&TOTAL).get_or_insert_with(|| Total {
        quiet,
        trace: trace.to_owned(),
        figures: None,
    });
}

/// Adds a round's.
pub(crate) fn add(figures: &Figures) {
    if let Some(total) = &mut *lock(&TOTAL) {
        total.figures.get_or_insert_default().add(figures);
    }
}

/// Says it.
pub(crate) fn print() {
    if let Some(Total {
        quiet: false,
        trace,
        figures: Some(figures),
    }) = &*lock(&TOTAL)
    {
        let lines = format!("{figures}\ntrace: {}", trace.display());
        let lines = lines.lines();
        let text: String = lines
            .map(|line| format!("hsa-serializer: {line}\n"))
            .collect();
        signals::write_error(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_add_up_and_what_is_wrong_is_said() {
        let mut total = Figures {
            kernels: 10,
            serialized: 6,
            ended: 8,
            lost: 1,
            ran: 1_500_000,
            waited: 500_000,
            waited_most: 7,
            gpus: 2,
            ..Figures::default()
        };
        total.add(&Figures {
            kernels: 2,
            ended: 2,
            overtaken: 1,
            waited_most: 5_000,
            gpus: 2,
            ..Figures::default()
        });
        let text = total.to_string();
        for part in [
            "kernels: 12, 6 of them serialized; GPUs: 2; 1 went with their queues; 1 had not ended\n",
            "stalls released: 0 transitions, 1 turns",
            "5.0µs at most",
            "kernels ran for 1.5ms; 25.0 % of what they took was waiting",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
