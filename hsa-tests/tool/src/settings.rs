//! What the environment says.

use hsa_serializer::StallPolicy;
use std::env;
use std::path::PathBuf;
use std::time::Duration;

/// What the tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It keeps the runtime's table.
    Save,
    /// It serializes.
    Serialize,
    /// It intercepts queues, and adds packets of its own.
    Pass,
    /// Signals can be made to run out.
    Scarce,
}

/// What the tool does where the runtime is shut down, or the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It shuts its serializers down, and lets go of the runtime.
    Shutdown,
    /// Nothing, as a tool that knows of neither.
    Nothing,
}

/// The environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    /// The pause between two toggles; `None`: it stays on.
    pub(crate) toggle: Option<Duration>,
    /// What stands still for so long is a stall; `None`: nobody looks.
    pub(crate) stalls: Option<Duration>,
    /// What is done about one.
    pub(crate) policy: StallPolicy,
    pub(crate) end: End,
    pub(crate) summary: Option<PathBuf>,
}

impl Settings {
    /// Reads the environment; the error names the variable that is wrong.
    pub(crate) fn read() -> Result<Self, String> {
        Self::from(|name| env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn from(get: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mode = match get("HSA_TEST_TOOL").as_deref() {
            None | Some("save") => Mode::Save,
            Some("serialize") => Mode::Serialize,
            Some("pass") => Mode::Pass,
            Some("scarce") => Mode::Scarce,
            Some(other) => {
                return Err(format!(
                    "HSA_TEST_TOOL={other}: must be save, serialize, pass or scarce"
                ));
            }
        };
        // 0 is as good as nothing.
        let number = |name: &str| match get(name) {
            None => Ok(None),
            Some(value) => {
                let number: Result<u64, _> = value.parse();
                let number = number.map_err(|_| format!("{name}={value}: not a whole number"));
                number.map(|number| (number != 0).then_some(number))
            }
        };
        let policy = match get("HSA_TEST_STALLS").as_deref() {
            Some("report") => StallPolicy::Report,
            None | Some("release") => StallPolicy::Release,
            Some(other) => {
                return Err(format!(
                    "HSA_TEST_STALLS={other}: must be report or release"
                ));
            }
        };
        let end = match get("HSA_TEST_END").as_deref() {
            None | Some("shutdown") => End::Shutdown,
            Some("nothing") => End::Nothing,
            Some(other) => {
                return Err(format!("HSA_TEST_END={other}: must be shutdown or nothing"));
            }
        };
        Ok(Self {
            mode,
            toggle: number("HSA_TEST_TOGGLE_US")?.map(Duration::from_micros),
            stalls: number("HSA_TEST_STALLS_MS")?.map(Duration::from_millis),
            policy,
            end,
            summary: get("HSA_TEST_SUMMARY").map(PathBuf::from),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &'static str) -> Result<Settings, String> {
        Settings::from(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn a_wrong_value_is_named_and_nothing_set_is_the_default() {
        for (name, value) in [
            ("HSA_TEST_TOOL", "x"),
            ("HSA_TEST_TOGGLE_US", "-1"),
            ("HSA_TEST_STALLS_MS", "1.5"),
            ("HSA_TEST_STALLS", "x"),
            ("HSA_TEST_END", "x"),
        ] {
            let error = with(name, value).unwrap_err();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
        let settings = with("HSA_TEST_TOGGLE_US", "0").unwrap();
        assert_eq!((settings.mode, settings.toggle), (Mode::Save, None));
        let toggle = with("HSA_TEST_TOGGLE_US", "7").unwrap().toggle;
        assert_eq!(toggle, Some(Duration::from_micros(7)));
    }
}
