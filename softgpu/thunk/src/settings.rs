//! What the environment says. Read once, at the first `hsaKmtOpenKFD`.

use crate::faults;
use std::env;
use std::path::PathBuf;
use std::time::Duration;

/// `SOFTGPU_...`, with the defaults for what is not set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// `SOFTGPU_GPUS`: GPU nodes, 1 to 64.
    pub(crate) gpus: u32,
    /// `SOFTGPU_KERNEL_NS`: how long a kernel lasts that does not say so itself.
    pub(crate) kernel_ns: u64,
    /// `SOFTGPU_RUNNING`: kernels of one queue that run at a time.
    pub(crate) running: usize,
    /// `SOFTGPU_EVENTS`: kernel events that a process may have.
    pub(crate) events: u32,
    /// `SOFTGPU_SEED`: every fault's dice.
    pub(crate) seed: u64,
    /// `SOFTGPU_FAULTS`: `name=value,...`, see [`crate::faults`].
    pub(crate) faults: Vec<(String, f64)>,
    /// `SOFTGPU_REPORT`: the file that gets the report; `%p` is the process's number.
    pub(crate) report: Option<PathBuf>,
    /// `SOFTGPU_STILL_S`: standing still for so long is reported, too.
    pub(crate) still: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gpus: 1,
            kernel_ns: 10_000,
            running: 64,
            events: 4_096,
            seed: 0,
            faults: Vec::new(),
            report: None,
            still: Duration::from_secs(2),
        }
    }
}

/// All of them.
const NAMES: [&str; 8] = [
    "SOFTGPU_GPUS",
    "SOFTGPU_KERNEL_NS",
    "SOFTGPU_RUNNING",
    "SOFTGPU_EVENTS",
    "SOFTGPU_SEED",
    "SOFTGPU_FAULTS",
    "SOFTGPU_REPORT",
    "SOFTGPU_STILL_S",
];

fn number(
    get: &impl Fn(&str) -> Option<String>,
    name: &str,
    range: std::ops::RangeInclusive<u64>,
) -> Result<Option<u64>, String> {
    let Some(value) = get(name) else {
        return Ok(None);
    };
    let parsed = value.parse().ok().filter(|n| range.contains(n));
    let (low, high) = range.into_inner();
    match parsed {
        Some(parsed) => Ok(Some(parsed)),
        None => Err(format!(
            "{name}={value}: must be a whole number, {low} to {high}"
        )),
    }
}

impl Settings {
    /// Reads the environment.
    ///
    /// # Errors
    /// Names the variable that is wrong, and what it may be.
    pub(crate) fn read() -> Result<Self, String> {
        let ours = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        for name in ours.filter(|name| name.starts_with("SOFTGPU_")) {
            if !NAMES.contains(&name.as_str()) {
                eprintln!(
                    "softgpu: {name} is not read; there are {}",
                    NAMES.join(", ")
                );
            }
        }
        let settings = Self::from(|name| env::var(name).ok())?;
        if let Some(path) = &settings.report {
            // Now, while somebody looks.
            std::fs::write(path, "")
                .map_err(|e| format!("SOFTGPU_REPORT={}: {e}", path.display()))?;
        }
        Ok(settings)
    }

    fn from(get: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        // What is set to nothing is not set.
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let default = Self::default();
        let whole = 0..=u64::MAX;
        let or = |found: Option<u64>, default: u64| found.unwrap_or(default);
        // The runtime wants three events for itself; there are as many as the real driver has.
        let events = number(&get, "SOFTGPU_EVENTS", 3..=4_096)?;
        let gpus = number(&get, "SOFTGPU_GPUS", 1..=64)?;
        let running = number(&get, "SOFTGPU_RUNNING", 1..=65_536)?;
        let still = number(&get, "SOFTGPU_STILL_S", 1..=1_000_000)?;
        let faults = get("SOFTGPU_FAULTS").unwrap_or_default();
        let faults = faults.split(',').filter(|part| !part.trim().is_empty());
        let path = |path: String| path.replace("%p", &std::process::id().to_string());
        Ok(Self {
            gpus: or(gpus, default.gpus.into()) as u32,
            kernel_ns: or(
                number(&get, "SOFTGPU_KERNEL_NS", whole.clone())?,
                default.kernel_ns,
            ),
            running: or(running, default.running as u64) as usize,
            events: or(events, default.events.into()) as u32,
            seed: or(number(&get, "SOFTGPU_SEED", whole)?, default.seed),
            faults: faults.map(fault).collect::<Result<_, _>>()?,
            report: get("SOFTGPU_REPORT").map(path).map(PathBuf::from),
            still: still.map_or(default.still, Duration::from_secs),
        })
    }
}

fn fault(part: &str) -> Result<(String, f64), String> {
    let (name, value) = part.split_once('=').unwrap_or((part, ""));
    let (name, value) = (name.trim(), value.trim());
    let Some(range) = faults::range_of(name) else {
        let known = faults::NAMES.join(", ");
        return Err(format!(
            "SOFTGPU_FAULTS: no fault is called {name:?}; there are {known}"
        ));
    };
    match value.parse() {
        Ok(parsed) if faults::accepts(name, parsed) => Ok((name.to_owned(), parsed)),
        _ => Err(format!("SOFTGPU_FAULTS: {name}={value}: must be {range}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &'static str) -> Result<Settings, String> {
        Settings::from(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn a_bad_value_is_named() {
        assert_eq!(with("SOFTGPU_GPUS", "8").unwrap().gpus, 8);
        for (name, value) in [
            ("SOFTGPU_GPUS", "0"),
            ("SOFTGPU_GPUS", "many"),
            ("SOFTGPU_EVENTS", "5000"),
            ("SOFTGPU_KERNEL_NS", "-1"),
            ("SOFTGPU_SEED", "99999999999999999999999"),
            ("SOFTGPU_FAULTS", "event_late=2"),
            ("SOFTGPU_FAULTS", "event_late=nan"),
            ("SOFTGPU_FAULTS", "fail_events=-1"),
            ("SOFTGPU_STILL_S", "0"),
        ] {
            let error = with(name, value).unwrap_err();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }

    #[test]
    fn an_unknown_fault_is_told_from_a_bad_value() {
        let error = with("SOFTGPU_FAULTS", "no_such=1").unwrap_err();
        assert!(error.contains("no_such") && error.contains("event_late"));
        let error = with("SOFTGPU_FAULTS", "event_late").unwrap_err();
        assert!(error.contains("0 to 1"), "{error}");
    }

    #[test]
    fn nothing_set_is_the_default() {
        assert_eq!(Settings::from(|_| None), Ok(Settings::default()));
        assert_eq!(
            Settings::from(|_| Some(String::new())),
            Ok(Settings::default())
        );
    }
}
