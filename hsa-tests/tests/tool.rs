//! The tool that users load (`tool/`), under programs in C and HIP that know nothing of it, on each runtime.
//!
//! Each program runs bare first; with the tool its results have to be the same. What the tool says at the end,
//! its trace, and what the emulated GPU has counted have to agree: `native/user.rs`.

mod native;

use native::user;
use native::{Run, Scenario, Tool, temporary};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;
use xtask::build;
use xtask::softgpu::{self, Outcome};

// ---- programs in C

fn client() -> Option<&'static Path> {
    static CLIENT: OnceLock<Option<PathBuf>> = OnceLock::new();
    CLIENT.get_or_init(|| native::C.client("c", "c")).as_deref()
}

const ALL: &[Tool] = &[Tool::Bare, Tool::User, Tool::UserToggle(300)];
/// For programs that no serializer can be switched under.
const STEADY: &[Tool] = &[Tool::Bare, Tool::User];

fn check(name: &str, gpus: u32) -> Vec<Run> {
    check_beside(ALL, name, gpus, &[])
}

fn check_beside(tools: &[Tool], name: &str, gpus: u32, environment: &[(&str, &str)]) -> Vec<Run> {
    let Some(client) = client() else {
        return Vec::new();
    };
    let runs = Scenario {
        client,
        name,
        gpus,
        tools,
        kernel_ns: None,
        own: 0,
        environment,
    }
    .check();
    for Run { summary, tool, .. } in &runs {
        // The tool was at work at all. A program can be at its end before it is switched for the first time.
        match tool {
            Tool::User => assert!(summary.transitions > 0, "{summary:?}"),
            Tool::UserToggle(_) => {
                assert!(summary.transitions + summary.kernels > 0, "{summary:?}");
            }
            _ => {}
        }
    }
    runs
}

/// Of each run with the tool.
fn with_tool(runs: Vec<Run>) -> impl Iterator<Item = Run> {
    runs.into_iter().filter(|run| run.tool != Tool::Bare)
}

#[test]
fn s01_s30_s66_s76_full_rate_on_queues_agents_and_threads_with_recycled_handles() {
    let tools = [ALL, &[Tool::UserToggle(20)]].concat();
    for run in with_tool(check_beside(&tools, "rate", 4, &[])) {
        assert_eq!(run.summary.kernels, 4 * 6 * 250);
        match run.tool {
            Tool::User => assert_eq!(run.summary.serialized, 4 * 6 * 250),
            _ => assert!(run.summary.transitions > 20, "{:?}", run.summary),
        }
    }
    check("recycled", 1);
}

/// Signals without kernel events, which the runtime polls.
#[test]
fn s64_a_runtime_that_has_run_out_of_kernel_events() {
    check_beside(ALL, "rate", 1, &[("SOFTGPU_EVENTS", "24")]);
}

#[test]
fn s39_a_serializer_for_each_of_eight_agents() {
    for run in with_tool(check("rate", 8)) {
        assert_eq!(run.summary.kernels, 8 * 6 * 250);
    }
}

#[test]
fn kernels_run_together_or_one_at_a_time() {
    for run in check("together", 1) {
        let running = run.number("running");
        match run.tool {
            Tool::Bare => assert!(running > 4, "{running}"),
            Tool::User => assert_eq!(running, 1),
            _ => {}
        }
    }
}

#[test]
fn s14_s53_s62_a_slot_that_is_rung_for_before_the_one_before_it() {
    check("unpublished", 1);
}

#[test]
fn s21_kernels_that_wait_for_some_that_are_submitted_later() {
    check_beside(STEADY, "barriers-ahead", 1, &[]);
}

/// And packets of types that are not kernels', which pass unchanged.
#[test]
fn s25_s27_s58_barriers_across_queues_and_agents() {
    check("barriers", 1);
    check("barriers", 2);
}

/// What passes a kernel on its queue may be more than the ring holds.
#[test]
fn packets_past_a_kernel_that_waits_for_the_host() {
    check("barriers-past-a-kernel", 1);
    check_beside(&[SWITCHED], "barriers-past-a-kernel", 1, PAUSED);
}

#[test]
fn s22_kernels_without_completion_signals() {
    check("unsignalled", 1);
}

#[test]
fn s32_s48_s50_s51_batches_of_the_ring_and_beyond_it() {
    check("batches", 1);
}

#[test]
fn an_interceptor_on_the_handlers_thread() {
    check("chained", 1);
    check("first-handler", 1);
    check_beside(&[SWITCHED], "first-handler", 1, PAUSED);
}

#[test]
fn s40_s41_queues_destroyed_with_work_pending() {
    for run in with_tool(check("destroy-pending", 1)) {
        assert!(run.summary.kernels > 40 * 12, "{:?}", run.summary);
    }
}

#[test]
fn s40_s42_queues_destroyed_right_at_completion() {
    check("destroy-at-completion", 1);
    check("destroy-from-handler", 1);
}

#[test]
fn s45_a_fault_stops_its_queue_alone_and_a_kernel_may_end_badly() {
    check("fault", 2);
    for run in with_tool(check("failed", 1)) {
        // Nobody knows when the 20 that have ended badly ran.
        assert_eq!((run.summary.kernels, run.summary.rows), (40, 20));
    }
}

#[test]
fn s78_timers_interrupt_everything() {
    check("storm", 1);
    check("waits", 1);
}

#[test]
fn handlers_and_timestamps_are_the_applications_own() {
    check("handlers", 1);
    check("profiling", 1);
}

#[test]
fn copies_and_kernels_that_wait_for_each_other() {
    check("copies-and-kernels", 2);
}

// ---- the process

#[test]
fn s37_s70_shut_down_with_work_pending() {
    for run in with_tool(check("shutdown-pending", 1)) {
        assert!(run.summary.kernels > 0, "{:?}", run.summary);
    }
}

#[test]
fn s72_s80_exit_with_work_pending_by_whomever() {
    for scenario in ["exit-pending", "exit-thread", "exit-shut-down"] {
        for run in with_tool(check(scenario, 1)) {
            // What the program has waited for is in the trace.
            assert!(run.summary.kernels >= 20, "{:?}", run.summary);
        }
    }
}

/// `atexit`, and destructors of objects in static storage: they come after the tool's own last words.
#[test]
fn s72_what_runs_after_main_waits_for_its_kernels_and_finds_them_ended() {
    for run in with_tool(check("exit-cleanup", 1)) {
        assert_eq!((run.summary.kernels, run.summary.rows), (30, 30));
    }
    check_hip_for("destructor", 1, STEADY, &[], 2_000_000);
}

/// The tool's own threads take no signal of the application's.
#[test]
fn s72_a_signal_handler_ends_the_process() {
    for run in with_tool(check("interrupted", 1)) {
        assert!(run.number("deaf") > 0);
        assert_eq!((run.summary.kernels, run.summary.rows), (20, 20));
    }
}

/// The thread that ends the process allocates nothing of the tool's, and locals of a thread are allocated at their first
/// use.
#[test]
fn s72_a_signal_handler_ends_the_process_in_the_middle_of_an_allocation() {
    let Some(client) = client() else { return };
    // Without the emulated GPU's report, which is made at the end of the process, and allocates.
    each(client, "interrupted-allocating", &[], |outcome| {
        let said = "kernels: 20, 20 of them serialized";
        assert!(outcome.stderr.contains(said), "{outcome}");
    });
}

/// However seldom it switches.
#[test]
fn s72_the_thread_that_switches_ends_with_the_process() {
    let tools = [Tool::Bare, Tool::UserToggle(1_000_000_000)];
    // The one that looks for stalls does no harm.
    let looks = [("HSA_SERIALIZER_STALL_MS", "0")];
    for run in with_tool(check_beside(&tools, "exit-switched", 1, &looks)) {
        assert_eq!(run.number("threads"), 2);
    }
}

#[test]
fn children_of_a_fork_end_and_their_parent_goes_on() {
    check("forks", 1);
}

#[test]
fn children_of_a_fork_that_use_the_runtime_are_refused() {
    let Some(client) = client() else { return };
    each(client, "fork-use", &[], |_| {});
}

#[test]
fn two_users_start_the_runtime_and_shut_it_down_at_the_same_time() {
    for run in with_tool(check("users", 1)) {
        assert_eq!(run.summary.kernels, 2 * 100);
    }
}

#[test]
fn rounds_of_init_and_shut_down_are_one_trace() {
    for run in with_tool(check("rounds", 2)) {
        assert_eq!(run.summary.kernels, 20 * 20);
    }
    check("refcount", 1);
}

#[test]
fn s47_what_comes_after_the_end_is_refused() {
    check("late", 1);
}

#[test]
fn s75_whoever_tries_to_unload_the_tool_does_not_succeed() {
    check("unload", 1);
}

// ---- on and off

/// By the program alone.
const SWITCHED: Tool = Tool::UserToggle(0);

const PAUSED: &[(&str, &str)] = &[("HSA_SERIALIZER_PAUSED", "1")];

/// The phases of the program, by the kernels that had a gate in each.
fn phases(run: &Run) -> [u64; 4] {
    ["paused", "resumed", "again", "next"].map(|phase| run.number(&format!("{phase}-gated")))
}

#[test]
fn s04_s09_s20_a_program_pauses_and_resumes_before_during_and_after() {
    for scenario in ["roctx", "own"] {
        for run in check_beside(&[Tool::Bare, SWITCHED], scenario, 1, &[]) {
            let expected = match run.tool {
                // Nobody hears it.
                Tool::Bare => [0; 4],
                // The library comes with the runtime, so the first call finds nobody.
                _ => [24, 24, 0, 24],
            };
            assert_eq!(phases(&run), expected, "{scenario} {}", run.runtime.name());
        }
    }
}

/// As before, where the tool was loaded with the program and stands before roctx, which goes on hearing.
#[test]
fn s20_a_preloaded_tool_hears_roctx_before_the_runtime_is_there_and_passes_it_on() {
    let roctx = temporary("libroctx.so");
    if client().is_none() {
        return;
    }
    native::C.shared("c/roctx/roctx.c", &roctx);
    let preload = format!("{}:{}", user::tool().display(), roctx.display());
    let preloaded = [("LD_PRELOAD", preload.as_str())];
    for run in check_beside(&[SWITCHED], "roctx", 1, &preloaded) {
        assert_eq!(phases(&run), [0, 24, 0, 24]);
        // 5 calls, and 20 in the middle of work.
        assert_eq!(run.number("roctx-calls"), 25);
    }
}

#[test]
fn it_starts_paused_where_that_is_wanted() {
    let Some(client) = client() else { return };
    for (scenario, gated) in [("roctx", [0, 24, 0, 24]), ("own", [0, 24, 0, 24])] {
        each(client, scenario, PAUSED, |outcome| {
            for (phase, gated) in ["paused", "resumed", "again", "next"].iter().zip(gated) {
                let line = format!("info {phase}-gated={gated}\n");
                assert!(outcome.stdout.contains(&line), "{line}: {outcome}");
            }
        });
    }
}

// ---- other tools

/// 5.2.3 loads it as often as it is named, and the tables have its own functions then.
#[test]
fn it_is_named_twice() {
    let Some(client) = client() else { return };
    let ours = user::tool().display();
    let twice = format!("{ours} {ours}");
    each(
        client,
        "refcount",
        &[("HSA_TOOLS_LIB", &twice)],
        |outcome| {
            let said = "kernels: 60, 60 of them serialized";
            assert!(outcome.stderr.contains(said), "{outcome}");
        },
    );
}

#[test]
fn another_tool_before_it_or_after_it() {
    let other = build::build_bin("hsa-test-tool", "hsa_test_tool");
    let (other, ours) = (other.display(), user::tool().display());
    let orders = [format!("{other} {ours}"), format!("{ours} {other}")];
    for (kind, order) in ["pass", "serialize", "save"]
        .iter()
        .flat_map(|kind| orders.iter().map(move |order| (kind, order)))
    {
        let environment = [("HSA_TEST_TOOL", *kind), ("HSA_TOOLS_LIB", order.as_str())];
        let tools: &[Tool] = if *kind == "serialize" {
            // Two that serialize, of which one is switched, can deadlock: docs/tool.md says so.
            &[Tool::User]
        } else {
            &[Tool::User, Tool::UserToggle(300)]
        };
        for run in check_beside(tools, "rate", 1, &environment) {
            assert_eq!(run.summary.kernels, 6 * 250, "{kind}: {order}");
        }
        if *kind == "pass" {
            // The other one sees the packets, too.
            let Some(client) = client() else { return };
            each(client, "rate", &environment, |outcome| {
                let passed = outcome.stderr.lines().find_map(|line| {
                    let rest = line.strip_prefix("hsa_test_tool: passed ")?;
                    rest.strip_suffix(" packets")?.parse::<u64>().ok()
                });
                assert!(passed >= Some(6 * 250), "{order}: {outcome}");
            });
        }
    }
}

/// Both as errors and as successes that give no signal. Kernels are passed on uncounted then; afterwards a marker
/// stands for them.
#[test]
fn s55_s63_a_runtime_without_signals_for_a_while() {
    let Some(client) = client() else { return };
    let scarce = build::build_bin("hsa-test-tool", "hsa_test_tool");
    let tools = format!("{} {}", scarce.display(), user::tool().display());
    let environment = [
        ("HSA_TEST_TOOL", "scarce"),
        ("HSA_TOOLS_LIB", tools.as_str()),
    ];
    each(client, "scarce", &environment, |outcome| {
        let then = "info scarce refused=some then-gated=24 then-overlaps=0\n";
        assert!(outcome.stdout.contains(then), "{outcome}");
        let passed_on = outcome.stderr.contains(" were passed on as they were");
        assert!(passed_on && !outcome.stderr.contains("FAULT"), "{outcome}");
    });
}

// ---- what can't be serialized

#[test]
fn a_program_that_serializing_deadlocks_is_let_go() {
    let looks = [("HSA_SERIALIZER_STALL_MS", "200")];
    for run in check_beside(STEADY, "mutual", 1, &looks) {
        if run.tool == Tool::User {
            assert_eq!((run.summary.overtaken, run.summary.kernels), (1, 2));
        }
    }
}

#[test]
fn a_program_that_serializing_deadlocks_is_named_where_that_is_wanted() {
    let Some(client) = client() else { return };
    let named = [
        ("HSA_SERIALIZER_STALL_MS", "200"),
        ("HSA_SERIALIZER_STALL_POLICY", "report"),
    ];
    for runtime in softgpu::runtimes() {
        let mut command = runtime.command(client);
        command.args(["mutual", "2"]).envs(named);
        command.env("HSA_TOOLS_LIB", user::tool());
        command.env("HSA_SERIALIZER_OUTPUT", "/dev/null");
        let outcome = softgpu::run(command, Duration::from_secs(30));
        assert_eq!(outcome.status.code(), Some(3), "{outcome}");
        let said = outcome.stderr.contains("holds the token") && outcome.stderr.contains("HUNG");
        assert!(said, "{outcome}");
    }
}

// ---- the environment

/// Runs a scenario with the tool and this environment, on each runtime; it has to succeed.
fn each(client: &Path, name: &str, environment: &[(&str, &str)], look: impl Fn(&Outcome)) {
    for runtime in softgpu::runtimes() {
        let run = || {
            let mut command = runtime.command(client);
            command
                .args([name, &native::DEADLINE.as_secs().to_string()])
                .env("HSA_TOOLS_LIB", user::tool())
                .env("HSA_SERIALIZER_OUTPUT", "/dev/null")
                .env("SOFTGPU_GPUS", "2")
                .envs(environment.iter().copied());
            softgpu::run(command, native::PATIENCE)
        };
        let outcome = native::again::unless_it_died_in_shut_down(
            runtime,
            name,
            run,
            native::died_in_shut_down,
        );
        assert!(outcome.succeeded(), "{}: {outcome}", runtime.name());
        look(&outcome);
    }
}

#[test]
fn a_bad_variable_is_named_and_the_program_runs_without_the_tool() {
    let Some(client) = client() else { return };
    for (name, value, why) in [
        (
            "HSA_SERIALIZER_AGENTS",
            "2",
            "there is no GPU 2; there are 2",
        ),
        ("HSA_SERIALIZER_AGENTS", "first", "must be all, or"),
        (
            "HSA_SERIALIZER_OUTPUT",
            "/nowhere/trace.csv",
            "No such file",
        ),
        ("HSA_SERIALIZER_STALL_MS", "soon", "must be a whole number"),
        ("HSA_SERIALIZER_STALL", "5", "there is no such variable"),
    ] {
        each(client, "everywhere", &[(name, value)], |outcome| {
            let said = outcome.stderr.lines().any(|line| {
                line.starts_with("hsa-serializer: ") && line.contains(name) && line.contains(why)
            });
            assert!(said, "{name}={value}: {outcome}");
            assert!(outcome.stdout.contains("gpu1-gated=0\n"), "{outcome}");
        });
    }
}

#[test]
fn s11_agents_that_are_not_wanted_are_left_alone() {
    let Some(client) = client() else { return };
    // Named twice, it is one all the same.
    for second in ["1", "1,1"] {
        let second = [("HSA_SERIALIZER_AGENTS", second)];
        each(client, "everywhere", &second, |outcome| {
            let gated = outcome
                .stdout
                .contains("info gpu0-gated=0\ninfo gpu1-gated=24\n");
            let counted = outcome
                .stderr
                .contains("kernels: 24, 24 of them serialized; GPUs: 1\n");
            assert!(gated && counted, "{outcome}");
        });
    }
}

#[test]
fn it_is_quiet_where_that_is_wanted_and_says_once_that_nothing_can_be_written() {
    let Some(client) = client() else { return };
    each(
        client,
        "rounds",
        &[("HSA_SERIALIZER_QUIET", "1")],
        |outcome| {
            assert!(!outcome.stderr.contains("hsa-serializer"), "{outcome}");
        },
    );
    each(
        client,
        "rounds",
        &[("HSA_SERIALIZER_OUTPUT", "/dev/full")],
        |outcome| {
            let full = outcome.stderr.matches("/dev/full: No space left").count();
            assert_eq!(full, 1, "{outcome}");
        },
    );
}

/// A write that fails sends a signal besides, which ends a program.
#[test]
fn files_that_may_not_grow_and_a_pipe_that_nobody_reads() {
    let Some(client) = client() else { return };
    let trace = temporary("limited.csv");
    let output = [("HSA_SERIALIZER_OUTPUT", trace.to_str().unwrap())];
    each(client, "unwritable", &output, |outcome| {
        let said = "limited.csv: File too large";
        assert_eq!(outcome.stderr.matches(said).count(), 1, "{outcome}");
    });
}

#[test]
fn each_process_has_a_trace_of_its_own() {
    let Some(client) = client() else { return };
    let directory = temporary("traces");
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    let name = directory.join("%p.csv");
    let output = [("HSA_SERIALIZER_OUTPUT", name.to_str().unwrap())];
    each(client, "everywhere", &output, |_| {});
    let files: Vec<_> = fs::read_dir(&directory).unwrap().collect();
    assert_eq!(files.len(), softgpu::runtimes().len());
    for file in files {
        let trace = traces::read(&file.unwrap().path()).unwrap();
        assert_eq!((trace.kernels.len(), trace.queues.len()), (48, 8));
        assert_eq!(trace.agents, ["Agent 1", "Agent 2"]);
        // The program wants no times, and the trace has those of its kernels all the same.
        let took = trace.kernels.iter().map(|k| k.end_ns - k.start_ns);
        assert!(took.clone().all(|ns| ns >= 500_000), "{:?}", took.min());
    }
}

// ---- HIP

fn hip() -> Option<&'static Path> {
    static CLIENT: OnceLock<Option<PathBuf>> = OnceLock::new();
    CLIENT
        .get_or_init(|| native::HIP.client("hip", "cpp"))
        .as_deref()
}

fn check_hip(name: &str, gpus: u32, tools: &[Tool], environment: &[(&str, &str)]) {
    check_hip_for(name, gpus, tools, environment, 40_000);
}

/// With kernels that last so many nanoseconds.
fn check_hip_for(
    name: &str,
    gpus: u32,
    tools: &[Tool],
    environment: &[(&str, &str)],
    kernel_ns: u32,
) {
    let Some(client) = hip() else { return };
    let runs = Scenario {
        client,
        name,
        gpus,
        tools,
        kernel_ns: Some(kernel_ns),
        // One, when HIP starts.
        own: 1,
        environment,
    }
    .check();
    for run in &runs {
        let running = run.number("running");
        match run.tool {
            Tool::Bare => assert!(running > 1 || name == "memsets", "{name}: {running}"),
            Tool::User => {
                assert_eq!(running, 1);
                // All but HIP's own.
                assert_eq!(run.number("gated") + 1, run.number("kernels"), "{name}");
            }
            _ => {}
        }
    }
}

#[test]
fn hip_streams_events_and_waits() {
    for name in ["copies", "streams", "events", "chains", "memsets"] {
        check_hip(name, 1, ALL, &[]);
    }
}

#[test]
fn hip_threads_on_two_gpus() {
    check_hip("threads", 2, STEADY, &[]);
    // On shared queues it is of those that a transition can deadlock (docs/integrating.md).
    let looks = [("HSA_SERIALIZER_STALL_MS", "500")];
    check_hip("threads", 2, &[Tool::UserToggle(300)], &looks);
}

#[test]
fn the_runtime_tells_the_names_of_hips_kernels() {
    let Some(client) = hip() else { return };
    let trace = temporary("names.csv");
    let output = [("HSA_SERIALIZER_OUTPUT", trace.to_str().unwrap())];
    each(client, "memsets", &output, |_| {
        let trace = traces::read(&trace).unwrap();
        let fills = trace.kernels.iter();
        let fills = fills.filter(|k| &*k.name == "__amd_rocclr_fillBufferAligned");
        assert_eq!(fills.count(), 21);
    });
}

/// `docs/on-hardware.md`, as far as it goes on an emulated GPU; and that it can refute something: a tool that was told
/// not to serialize.
#[test]
fn what_an_owner_of_a_gpu_runs_says_what_it_has_seen() {
    if hip().is_none() {
        return;
    }
    let script = build::workspace().join("scripts/on-hardware.sh");
    for (name, paused, code) in [("accepted", "0", 0), ("refuted", "1", 1)] {
        let out = temporary(&format!("on-hardware-{name}"));
        let mut command = softgpu::Runtime::Installed.command(&script);
        command.args(["--seconds", "1", "--tool"]).arg(user::tool());
        command.arg("--out").arg(&out);
        command.env("SOFTGPU_KERNEL_NS", "40000");
        command.env("HSA_SERIALIZER_PAUSED", paused);
        let outcome = softgpu::run(command, Duration::from_secs(300));
        assert_eq!(outcome.status.code(), Some(code), "{outcome}");
        let verdicts = fs::read_to_string(out.join("verdicts.txt")).unwrap();
        let of = |start: &str| verdicts.lines().filter(|l| l.starts_with(start)).count();
        assert_eq!(of("FIGURE"), 2, "{verdicts}");
        assert_eq!(of("SKIPPED stall"), 1, "{verdicts}");
        assert_eq!(of("REFUTED serialized: "), code as usize, "{verdicts}");
        assert_eq!(of("passed "), 7 - code as usize, "{verdicts}");
        assert!(out.join("results.tar.gz").exists());
    }
}

// ---- the library

#[test]
fn s75_its_functions_are_exported_it_stays_and_the_header_declares_them() {
    let header = fs::read_to_string(build::workspace().join("tool/include/hsa_serializer_tool.h"));
    let header = header.unwrap();
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(user::tool())
        .output();
    let symbols = String::from_utf8(output.unwrap().stdout).unwrap();
    for name in [
        "hsa_serializer_tool_pause",
        "hsa_serializer_tool_resume",
        "roctxProfilerPause",
        "roctxProfilerResume",
    ] {
        assert!(
            symbols.contains(&format!(" T {name}\n")),
            "{name}: {symbols}"
        );
        assert!(header.contains(&format!("int {name}(")), "{name}");
    }
    for name in ["OnLoad", "OnUnload"] {
        assert!(
            symbols.contains(&format!(" T {name}\n")),
            "{name}: {symbols}"
        );
    }
    // It stays mapped, whoever closes it.
    let output = Command::new("readelf").arg("-d").arg(user::tool()).output();
    let dynamic = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(dynamic.contains("NODELETE"), "{dynamic}");
}
