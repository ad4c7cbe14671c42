//! Everything that the documents say of performance, measured and written at once.

use crate::catalogue::{self, BARRIERS, Group, QUEUES};
use crate::compare::{self, Effort, Figure};
use crate::latency;
use crate::plot::{self, Axes, Line};
use crate::report::{self, Judged};
use crate::table::How;
use crate::verdict;
use anyhow::Result;
use std::path::Path;
use std::time::Duration;

/// How long latencies are measured.
const LATENCIES: Duration = Duration::from_secs(10);
/// Between two transitions meanwhile.
const PAUSE: Duration = Duration::from_millis(1);

/// What is timed, with its figures.
struct Timed(Vec<(Group, Vec<Figure>)>);

impl Timed {
    fn measure() -> Self {
        let groups = [catalogue::hot(), catalogue::threads(), catalogue::rare()];
        let figures = |group: &Group| {
            println!("{}", group.name);
            let figures = group.benches.iter().map(|bench| {
                let measure = || compare::nanoseconds(&mut bench.make(), Effort::CHECK);
                // Against no target: for its measuring again where there is too much noise.
                let (figure, _) = verdict::judge(f64::INFINITY, measure);
                println!("  {}: {:.1} ns", bench.name, figure.value);
                figure
            });
            figures.collect()
        };
        let measured = groups.into_iter().flatten().map(|group| {
            let figures = figures(&group);
            (group, figures)
        });
        Self(measured.collect())
    }

    /// The nanoseconds of a bench.
    ///
    /// # Panics
    /// Where there is none of that name: the catalogue and the plots have to agree.
    fn of(&self, group: &str, bench: &str) -> f64 {
        let found = self.0.iter().find(|(g, _)| g.name == group);
        let at = found.and_then(|(g, figures)| {
            let i = g.benches.iter().position(|b| b.name == bench)?;
            Some(figures[i].value)
        });
        at.unwrap_or_else(|| panic!("nothing is called {bench} in {group}"))
    }

    /// A line over the numbers of a kind of bench.
    fn line(
        &self,
        name: &str,
        group: &str,
        numbers: &[usize],
        bench: impl Fn(usize) -> String,
    ) -> Line {
        Line {
            name: name.to_owned(),
            points: numbers
                .iter()
                .map(|&n| (n as f64, self.of(group, &bench(n))))
                .collect(),
        }
    }
}

/// Measures everything that is not a target, and writes the tables and pictures in the workspace at
/// `root`.
///
/// # Errors
/// Where a document or a picture can't be written.
pub fn write(root: &Path, judged: &[Judged]) -> Result<()> {
    let timed = Timed::measure();
    println!("latencies, {} s", LATENCIES.as_secs());
    let latencies = latency::measure(LATENCIES, PAUSE);

    let docs = root.join("docs");
    picture(&docs.join("performance.svg"), judged)?;
    barriers(&docs.join("bench-barriers.svg"), &timed)?;
    toggles(&docs.join("bench-toggles.svg"), &timed)?;
    plot::latencies(&docs.join("bench-latency.svg"), &latencies)?;

    let groups: Vec<_> = timed.0.iter().map(|(g, f)| (g, f.clone())).collect();
    let benchmarks = root.join("BENCHMARKS.md");
    report::replace(&benchmarks, "targets", &report::table(judged))?;
    report::replace(&benchmarks, "figures", &report::figures(&groups))?;
    let text = format!(
        "{}\n{} transitions meanwhile; reading the clock takes {} ns, which are subtracted.\n",
        report::latencies(&latencies),
        latencies.transitions,
        latencies.clock,
    );
    report::replace(&benchmarks, "latencies", &text)?;
    report::replace(
        &root.join("README.md"),
        "performance",
        &report::short(judged),
    )
}

/// The README's picture: the crate and the yardstick, by one thread and by two.
fn picture(to: &Path, judged: &[Judged]) -> Result<()> {
    let bars: Vec<_> = judged
        .iter()
        .filter(|j| j.target.is_against_locked() && matches!(j.target.how, How::Ratio(..)))
        .filter_map(|j| {
            let (own, base) = j.figure.nanoseconds;
            Some((j.target.what, vec![own, base?]))
        })
        .collect();
    let axes = Axes {
        title: "What a kernel costs the host, and what on and off costs",
        x: "",
        y: "ns",
    };
    plot::bars(to, axes, &["this crate", "under locks"], &bars)
}

fn barriers(to: &Path, timed: &Timed) -> Result<()> {
    let group = "disabled, so many live barriers";
    let all = [
        "crate",
        "locked",
        "list under parking_lot::RwLock",
        "list under arc-swap",
    ]
    .map(|name| timed.line(name, group, &BARRIERS, |n| format!("{name}, {n}")));
    let axes = Axes {
        title: "Dispatch and completion, behind so many live barriers",
        x: "barriers",
        y: "ns",
    };
    plot::lines(to, axes, &all)
}

fn toggles(to: &Path, timed: &Timed) -> Result<()> {
    let all = [
        ("crate", "idle"),
        ("locked", "idle"),
        ("crate", "a kernel in flight each"),
        ("locked", "a kernel in flight each"),
    ]
    .map(|(side, load)| {
        timed.line(
            &format!("{side}, {load}"),
            "enable + disable",
            &QUEUES,
            |n| format!("{side}, {n} queues, {load}"),
        )
    });
    let axes = Axes {
        title: "Enable and disable, with so many queues",
        x: "queues",
        y: "ns",
    };
    plot::lines(to, axes, &all)
}
