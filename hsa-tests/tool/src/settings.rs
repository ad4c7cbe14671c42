//! What the environment says.

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
}

/// The environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    /// The pause between two toggles; `None`: it stays on.
    pub(crate) toggle: Option<Duration>,
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
            Some(other) => {
                return Err(format!("HSA_TEST_TOOL={other}: must be save or serialize"));
            }
        };
        let toggle = match get("HSA_TEST_TOGGLE_US") {
            None => 0,
            Some(value) => value
                .parse()
                .map_err(|_| format!("HSA_TEST_TOGGLE_US={value}: not a whole number"))?,
        };
        Ok(Self {
            mode,
            toggle: (toggle != 0).then(|| Duration::from_micros(toggle)),
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
        for (name, value) in [("HSA_TEST_TOOL", "x"), ("HSA_TEST_TOGGLE_US", "-1")] {
            let error = with(name, value).unwrap_err();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
        let settings = with("HSA_TEST_TOGGLE_US", "0").unwrap();
        assert_eq!((settings.mode, settings.toggle), (Mode::Save, None));
        let toggle = with("HSA_TEST_TOGGLE_US", "7").unwrap().toggle;
        assert_eq!(toggle, Some(Duration::from_micros(7)));
    }
}
