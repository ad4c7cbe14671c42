//! Clients in C and C++: compiled here, run on every runtime, bare and under the tool, with the same
//! results.

// Each of the test programs uses its part of it.
#![allow(dead_code)]

pub(crate) mod again;
pub(crate) mod user;

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use xtask::build;
use xtask::softgpu::{self, Outcome, Runtime};

/// After this a client says who waits for whom, and ends. Only what hangs takes so long, on a busy machine too.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// How long a client is waited for: it ends by itself before.
pub(crate) const PATIENCE: Duration = DEADLINE.saturating_add(Duration::from_secs(10));

/// A compiler, and what it needs.
pub(crate) struct Compiler {
    /// Its name.
    pub(crate) program: &'static str,
    /// Options, first of all for the language.
    pub(crate) options: &'static [&'static str],
    /// Its name for the language.
    pub(crate) language: &'static str,
    /// The header that has to be installed.
    pub(crate) header: &'static str,
    /// The library that has to be installed.
    pub(crate) library: &'static str,
    /// Debian's packages of them.
    pub(crate) packages: &'static str,
}

/// For programs in C that use HSA.
pub(crate) const C: Compiler = Compiler {
    program: "cc",
    options: &["-std=gnu11"],
    language: "c",
    header: "hsa/hsa_ext_amd.h",
    library: "-lhsa-runtime64",
    packages: "gcc, libc6-dev, libhsa-runtime-dev",
};

/// For programs that use HIP.
pub(crate) const HIP: Compiler = Compiler {
    program: "c++",
    options: &["-std=c++17", "-D__HIP_PLATFORM_AMD__"],
    language: "c++",
    header: "hip/hip_runtime_api.h",
    library: "-lamdhip64",
    packages: "g++, libamdhip64-dev",
};

impl Compiler {
    /// The client in a directory; `None`, said aloud, if something isn't installed.
    pub(crate) fn client(&self, directory: &str, extension: &str) -> Option<PathBuf> {
        if let Err(e) = self.probe() {
            softgpu::missing(&format!("clients in {directory}"), &e);
            return None;
        }
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
        let mut sources: Vec<_> = fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == extension))
            .collect();
        sources.sort();
        let client = temporary(&format!("client-{extension}"));
        let compiled = Command::new(self.program)
            .args(self.options)
            .args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"])
            .args(sources)
            .arg("-o")
            .args([client.as_os_str(), self.library.as_ref()])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{errors}");
        Some(client)
    }

    /// A shared object of one source file, which needs no library.
    pub(crate) fn shared(&self, source: &str, to: &Path) {
        let compiled = Command::new(self.program)
            .args(self.options)
            .args(["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(source))
            .arg("-o")
            .arg(to)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{errors}");
    }

    fn probe(&self) -> anyhow::Result<()> {
        let source = temporary(&format!("probe-{}", self.language));
        fs::write(
            &source,
            format!(
                "#include <{}>\nint main(void) {{ return 0; }}\n",
                self.header
            ),
        )?;
        let output = Command::new(self.program)
            .args(self.options)
            .args(["-x", self.language])
            .arg(&source)
            .args([self.library, "-o", "/dev/null"])
            .output();
        let works = output.as_ref().is_ok_and(|o| o.status.success());
        anyhow::ensure!(
            works,
            "{} does not find {} and {} (in Debian: {})",
            self.program,
            self.header,
            self.library,
            self.packages
        );
        Ok(())
    }
}

pub(crate) fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// What is loaded into the client besides, by HSA_TOOLS_LIB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    /// Nothing.
    Bare,
    /// A tool that only saves the runtime's table.
    Save,
    /// One that serializes every kernel.
    Serialize,
    /// The same, switched off and on every so many microseconds.
    Toggle(u32),
    /// The same, or steady where that is 0, and it does nothing at the end: there is no summary.
    Silent(u32),
    /// The tool that users load, whatever the scenario's environment says to it.
    User,
    /// The same, switched off and on every so many microseconds; 0: by the program alone.
    UserToggle(u32),
}

impl Tool {
    fn add_to(self, command: &mut Command, summary: &Path, files: &user::Files) {
        let kind = match self {
            Self::Bare => return,
            Self::User => return files.add_to(command),
            Self::UserToggle(period) => {
                command.env("HSA_SERIALIZER_TOGGLE_US", period.to_string());
                return files.add_to(command);
            }
            Self::Save => "save",
            Self::Serialize => "serialize",
            Self::Toggle(period) => {
                command.env("HSA_TEST_TOGGLE_US", period.to_string());
                "serialize"
            }
            Self::Silent(period) => {
                command.env("HSA_TEST_TOGGLE_US", period.to_string());
                command.env("HSA_TEST_END", "nothing");
                "serialize"
            }
        };
        // Tried once, not once a test.
        static TOOL: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        let built = TOOL.get_or_init(|| {
            build::artifact("hsa-test-tool", "hsa_test_tool").map_err(|e| format!("{e:#}"))
        });
        let tool = built.as_ref().unwrap_or_else(|e| panic!("{e}"));
        command
            .env("HSA_TOOLS_LIB", tool)
            .env("HSA_TEST_TOOL", kind)
            .env("HSA_TEST_SUMMARY", summary);
    }

    fn has_summary(self) -> bool {
        matches!(self, Self::Serialize | Self::Toggle(_))
    }

    fn is_users(self) -> bool {
        matches!(self, Self::User | Self::UserToggle(_))
    }

    /// Whether it serializes all the time.
    fn is_steady(self) -> bool {
        matches!(self, Self::Serialize | Self::User)
    }
}

/// What the tool says of itself at the end.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Summary {
    /// Kernels that it saw.
    pub(crate) kernels: u64,
    /// Of them, serialized ones.
    pub(crate) serialized: u64,
    /// Times that serializing was switched on or off.
    pub(crate) transitions: u64,
    /// Stalls that were looked for and found.
    pub(crate) stalls: Stalls,
    /// Barriers that were cleared by force, and holders of the token that were overtaken.
    pub(crate) forced: u64,
    pub(crate) overtaken: u64,
    /// Misuse that the serializer reported.
    pub(crate) reports: Vec<serde_json::Value>,
    /// Kernels that ran beside a serialized one, as the users' tool has found by their times.
    #[serde(default)]
    pub(crate) overlaps: u64,
    /// Kernels in that tool's trace.
    #[serde(default)]
    pub(crate) rows: u64,
    /// Kernels that ran beside another one, by it.
    #[serde(default)]
    pub(crate) side_by_side: u64,
    /// What the emulated GPU saw of the process.
    pub(crate) witness: Witness,
}

/// What stood still.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Stalls {
    /// Looks that found something.
    pub(crate) looks: u64,
    /// Barriers and holders that were released.
    pub(crate) barriers: u64,
    pub(crate) holders: u64,
}

/// What the emulated GPU counts by itself, by the packets alone.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Witness {
    /// Kernels that were started.
    pub(crate) kernels_started: u64,
    /// Of them, ones behind a serializer's gate.
    pub(crate) gated: u64,
    /// Kernels that ran beside one that should have run alone.
    pub(crate) overlaps: u64,
    /// The same, of a queue that never had a gated one.
    pub(crate) beside: u64,
    /// Packets whose signal was gone when they were executed.
    pub(crate) stale_packets: u64,
}

impl Summary {
    /// How often something was let through that stood still.
    pub(crate) fn released(&self) -> u64 {
        self.stalls.barriers + self.stalls.holders
    }

    /// What must not be in it.
    fn objections(&self, tool: Tool, own: u64) -> Vec<&'static str> {
        let witness = &self.witness;
        // What the GPU says at the end it may say before the program's kernels have begun: a destructor waits
        // for them.
        let gates = tool.is_steady() && witness.kernels_started > own;
        let serializes = tool.is_steady() && self.kernels > 0;
        let objections = [
            (!self.reports.is_empty(), "misuse was reported"),
            // Beside kernels of queues that are not intercepted too: those run at the start at most.
            (
                witness.overlaps + witness.beside > 0 && self.released() == 0,
                "kernels ran together",
            ),
            (
                self.released() > self.forced + self.overtaken,
                "releases were not counted",
            ),
            (
                witness.stale_packets > 0,
                "packets named signals that were gone",
            ),
            (
                gates && (witness.gated == 0 || witness.gated + own < witness.kernels_started),
                "kernels had no gate",
            ),
            (serializes && self.serialized == 0, "nothing was serialized"),
            (
                self.overlaps > 0 && self.released() == 0,
                "the tool has found overlaps",
            ),
            (
                // A few may seem to, where the runtime has corrected its conversion of the GPU's clock; the
                // tool's own count goes by that clock itself.
                serializes && self.side_by_side * 20 > self.rows && self.released() == 0,
                "its trace has kernels side by side",
            ),
        ];
        objections
            .into_iter()
            .filter_map(|(is, what)| is.then_some(what))
            .collect()
    }
}

/// One run.
pub(crate) struct Run {
    /// On which runtime.
    pub(crate) runtime: Runtime,
    /// Beside which tool.
    pub(crate) tool: Tool,
    /// The lines that have to be the same in every run.
    pub(crate) results: Vec<String>,
    /// Numbers that may differ, by their names.
    pub(crate) numbers: BTreeMap<String, u64>,
    /// What the tool says, where it serializes.
    pub(crate) summary: Summary,
}

impl Run {
    /// A number that the client printed.
    pub(crate) fn number(&self, name: &str) -> u64 {
        let numbers = &self.numbers;
        *numbers
            .get(name)
            .unwrap_or_else(|| panic!("no {name} in {numbers:?}"))
    }
}

/// A scenario of a client, and under what it is run.
pub(crate) struct Scenario<'a> {
    /// The client.
    pub(crate) client: &'a Path,
    /// The scenario's name on its command line.
    pub(crate) name: &'a str,
    /// On so many GPUs.
    pub(crate) gpus: u32,
    /// Beside these.
    pub(crate) tools: &'a [Tool],
    /// How many nanoseconds a kernel lasts that does not say so itself; `None`: the default.
    pub(crate) kernel_ns: Option<u32>,
    /// So many kernels may run on queues that the tool does not intercept.
    pub(crate) own: u64,
    /// The client's environment, besides.
    pub(crate) environment: &'a [(&'a str, &'a str)],
}

impl Scenario<'_> {
    /// Runs it on every runtime, beside every tool; all runs have to succeed, with the same results.
    pub(crate) fn check(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for runtime in softgpu::runtimes() {
            for &tool in self.tools {
                let run = self.run(runtime, tool);
                if let Some(first) = runs.first() {
                    assert_eq!(
                        first.results,
                        run.results,
                        "{} with {:?} differs from {} with {:?}",
                        runtime.name(),
                        tool,
                        first.runtime.name(),
                        first.tool,
                    );
                }
                runs.push(run);
            }
        }
        runs
    }

    fn run(&self, runtime: Runtime, tool: Tool) -> Run {
        let once = || self.once(runtime, tool);
        let died = |ended: &Ended| died_in_shut_down(&ended.outcome);
        let ended = again::unless_it_died_in_shut_down(runtime, self.name, once, died);
        ended.checked(runtime, tool, self.own)
    }

    fn once(&self, runtime: Runtime, tool: Tool) -> Ended {
        let what = format!(
            "{} on {} {}, {:?}",
            self.name,
            runtime.name(),
            runtime.version(),
            tool
        );
        let client = self
            .client
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        // Two tests may run the same at a time.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let summary = temporary(&format!("{client}-{what}-{number}.json"));
        let _ = fs::remove_file(&summary);
        let mut command = runtime.command(self.client);
        command
            .arg(self.name)
            .arg(DEADLINE.as_secs().to_string())
            .env("SOFTGPU_GPUS", self.gpus.to_string());
        if let Some(ns) = self.kernel_ns {
            command.env("SOFTGPU_KERNEL_NS", ns.to_string());
        }
        let files = user::Files::new(&summary);
        tool.add_to(&mut command, &summary, &files);
        // Last, for it may have something to say to the tool.
        command.envs(self.environment.iter().copied());
        let outcome = softgpu::run(command, PATIENCE);
        Ended {
            what,
            outcome,
            summary,
            files,
        }
    }
}

/// Whether it died in 6.1.2's own fault: see [`again`].
pub(crate) fn died_in_shut_down(outcome: &Outcome) -> bool {
    let says = |what: &str| outcome.stderr.contains(what);
    says("HUNG: ") && says(", in hsa_shut_down\n") || says(again::NOTICED)
}

/// A client that has ended, and what it has left.
struct Ended {
    what: String,
    outcome: Outcome,
    summary: PathBuf,
    files: user::Files,
}

impl Ended {
    /// It has succeeded, and the tool beside it has nothing to object to.
    fn checked(self, runtime: Runtime, tool: Tool, own: u64) -> Run {
        let Self {
            what,
            outcome,
            summary,
            files,
        } = self;
        assert!(outcome.succeeded(), "{what}: {outcome}");
        let mut run = Run {
            runtime,
            tool,
            results: lines(&outcome, "ok ").map(str::to_owned).collect(),
            numbers: lines(&outcome, "info ").flat_map(pairs).collect(),
            summary: Summary::default(),
        };
        assert!(!run.results.is_empty(), "{what}: {outcome}");
        if tool.is_users() {
            run.summary = files.summary(&outcome);
            let found = run.summary.objections(tool, own);
            assert!(
                found.is_empty(),
                "{what}: {found:?}: {:?}{outcome}",
                run.summary
            );
        }
        if tool.has_summary() {
            let text = fs::read_to_string(&summary)
                .unwrap_or_else(|e| panic!("{what}: the tool left no summary: {e}\n{outcome}"));
            run.summary = serde_json::from_str(&text)
                .unwrap_or_else(|e| panic!("{what}: the tool's summary, {text}: {e}"));
            let found = run.summary.objections(tool, own);
            assert!(found.is_empty(), "{what}: {found:?}: {text}{outcome}");
        }
        run
    }
}

fn lines<'a>(outcome: &'a Outcome, kind: &'a str) -> impl Iterator<Item = &'a str> {
    outcome
        .stdout
        .lines()
        .filter_map(move |l| l.strip_prefix(kind))
}

/// `name=number` in a line.
fn pairs(line: &str) -> impl Iterator<Item = (String, u64)> {
    line.split_whitespace().filter_map(|word| {
        let (name, number) = word.split_once('=')?;
        Some((name.to_owned(), number.parse().ok()?))
    })
}
