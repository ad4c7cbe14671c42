//! What the environment says. Read once, at the first `hsaKmtOpenKFD`.

use std::env;
use std::path::PathBuf;

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
    /// `SOFTGPU_REPORT`: the file that gets the report when the process ends.
    pub(crate) report: Option<PathBuf>,
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
        }
    }
}

fn number(name: &str, value: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64, String> {
    let parsed: u64 = value
        .parse()
        .map_err(|_| format!("{name}={value}: not a whole number"))?;
    if !range.contains(&parsed) {
        let (low, high) = range.into_inner();
        return Err(format!("{name}={value}: must be {low} to {high}"));
    }
    Ok(parsed)
}

impl Settings {
    /// Reads the environment.
    ///
    /// # Errors
    /// Names the variable that is wrong, and what it may be.
    pub(crate) fn read() -> Result<Self, String> {
        Self::from(|name| env::var(name).ok())
    }

    fn from(get: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut settings = Self::default();
        if let Some(value) = get("SOFTGPU_GPUS") {
            settings.gpus = number("SOFTGPU_GPUS", &value, 1..=64)? as u32;
        }
        if let Some(value) = get("SOFTGPU_KERNEL_NS") {
            settings.kernel_ns = number("SOFTGPU_KERNEL_NS", &value, 0..=u64::MAX)?;
        }
        if let Some(value) = get("SOFTGPU_RUNNING") {
            settings.running = number("SOFTGPU_RUNNING", &value, 1..=65_536)? as usize;
        }
        if let Some(value) = get("SOFTGPU_EVENTS") {
            // The runtime wants three for itself; as many mailboxes as the real driver has.
            settings.events = number("SOFTGPU_EVENTS", &value, 3..=4_096)? as u32;
        }
        if let Some(value) = get("SOFTGPU_SEED") {
            settings.seed = number("SOFTGPU_SEED", &value, 0..=u64::MAX)?;
        }
        if let Some(value) = get("SOFTGPU_FAULTS") {
            for part in value.split(',').filter(|part| !part.trim().is_empty()) {
                let fault = part
                    .split_once('=')
                    .and_then(|(name, value)| Some((name.trim(), value.trim().parse().ok()?)))
                    .filter(|(name, value)| crate::faults::accepts(name, *value));
                let Some((name, value)) = fault else {
                    let known = crate::faults::NAMES.join(", ");
                    return Err(format!(
                        "SOFTGPU_FAULTS: {part:?} is no fault with a value; there are {known}"
                    ));
                };
                settings.faults.push((name.to_owned(), value));
            }
        }
        settings.report = get("SOFTGPU_REPORT")
            .filter(|path| !path.is_empty())
            .map(PathBuf::from);
        Ok(settings)
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
            ("SOFTGPU_FAULTS", "event_late"),
            ("SOFTGPU_FAULTS", "event_late=2"),
            ("SOFTGPU_FAULTS", "no_such=1"),
        ] {
            let error = with(name, value).unwrap_err();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }

    #[test]
    fn nothing_set_is_the_default() {
        assert_eq!(Settings::from(|_| None), Ok(Settings::default()));
    }
}
