//! Ends a process that stands still, and says who waits for whom.

use crate::lock;
use crate::witness::Witness;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// The exit code of a process that stood still.
pub const STUCK: i32 = 3;

static STEPS: AtomicU64 = AtomicU64::new(0);
static STAGE: Mutex<&str> = Mutex::new("");

/// Has what a stuck scenario says of itself.
type Say = Box<dyn Fn() -> Value + Send>;
static SAY: Mutex<Option<Say>> = Mutex::new(None);

/// Something has moved.
pub fn step() {
    STEPS.fetch_add(1, Relaxed);
}

/// Names the part of its scenario that the process is in.
pub fn stage(name: &'static str) {
    *lock(&STAGE) = name;
    step();
}

/// Says what a scenario that gets stuck adds to its line.
pub fn when_stuck(say: impl Fn() -> Value + Send + 'static) {
    *lock(&SAY) = Some(Box::new(say));
}

/// Starts the watchdog: when nothing has moved for so long, it prints the scenario's line with
/// `"stuck": true`, says on standard error who waits for whom, and ends the process.
pub fn start(scenario: &'static str, patience: Duration) {
    thread::spawn(move || {
        let mut seen = (STEPS.load(Relaxed), Instant::now());
        loop {
            thread::sleep(Duration::from_millis(20));
            let steps = STEPS.load(Relaxed);
            if steps != seen.0 {
                seen = (steps, Instant::now());
            } else if seen.1.elapsed() >= patience {
                stuck(scenario);
            }
        }
    });
}

/// Ends the process as one that stands still.
pub fn stuck(scenario: &'static str) -> ! {
    match Witness::find() {
        Ok(witness) => eprintln!("{}", witness.describe()),
        Err(e) => eprintln!("{e:#}"),
    }
    // Who holds it is stuck, too.
    let said = SAY.try_lock().ok().and_then(|say| Some(say.as_ref()?()));
    let mut line = json!({ "scenario": scenario, "ok": false, "stuck": true });
    line["stage"] = json!(*lock(&STAGE));
    if let (Value::Object(line), Some(Value::Object(said))) = (&mut line, said) {
        line.extend(said);
    }
    exit(&line, STUCK)
}

/// Prints a scenario's line and ends the process at once: what the runtime does at an exit is not
/// waited for, as it may hang where the scenario did.
pub fn exit(line: &Value, code: i32) -> ! {
    println!("{line}");
    let _ = std::io::stdout().flush();
    // SAFETY: it has no requirements.
    unsafe { libc::_exit(code) }
}
