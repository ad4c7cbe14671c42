//! What the environment says.

use hsa_serializer::StallPolicy;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;
use std::{env, process};

const PREFIX: &str = "HSA_SERIALIZER_";

/// Which GPUs are serialized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    All,
    /// By their numbers, in the order in which the runtime lists them.
    Some(Vec<usize>),
}

/// The environment; `docs/tool.md` describes each variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) output: PathBuf,
    pub(crate) paused: bool,
    pub(crate) agents: Wanted,
    /// What stands still for so long is a stall; `None`: nobody looks.
    pub(crate) stall: Option<Duration>,
    pub(crate) policy: StallPolicy,
    /// A thread of the tool's own pauses and resumes so often; `None`: none does.
    pub(crate) toggle: Option<Duration>,
    pub(crate) quiet: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            output: numbered(OsStr::new("kernel_trace_%p.csv")),
            paused: false,
            agents: Wanted::All,
            stall: Some(Duration::from_secs(10)),
            policy: StallPolicy::Release,
            toggle: None,
            quiet: false,
        }
    }
}

impl Settings {
    /// Reads the environment; the error names the variable that is wrong.
    pub(crate) fn read() -> Result<Self, String> {
        Self::from(env::vars_os())
    }

    fn from(variables: impl Iterator<Item = (OsString, OsString)>) -> Result<Self, String> {
        let mut settings = Self::default();
        for (name, value) in variables {
            let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else {
                continue;
            };
            // Set to nothing is as good as not set.
            if !value.is_empty() {
                let set = settings.set(&name[PREFIX.len()..], &value);
                set.map_err(|e| format!("{name}={}: {e}", value.to_string_lossy()))?;
            }
        }
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: &OsStr) -> Result<(), String> {
        // What is no text is no value of any but the first.
        let text = value.to_str().unwrap_or("?");
        match name {
            "OUTPUT" => self.output = numbered(value),
            "PAUSED" => self.paused = switch(text)?,
            "AGENTS" => self.agents = agents(text)?,
            "STALL_MS" => self.stall = time(text, Duration::from_millis)?,
            "STALL_POLICY" => {
                self.policy = match text {
                    "report" => StallPolicy::Report,
                    "release" => StallPolicy::Release,
                    _ => return Err("must be report or release".into()),
                }
            }
            "TOGGLE_US" => self.toggle = time(text, Duration::from_micros)?,
            "QUIET" => self.quiet = switch(text)?,
            _ => {
                return Err(format!(
                    "there is no such variable; there are {PREFIX}OUTPUT, _PAUSED, _AGENTS, \
                     _STALL_MS, _STALL_POLICY, _TOGGLE_US and _QUIET"
                ));
            }
        }
        Ok(())
    }
}

/// A file's name, in which `%p` is this process's number: a program's children have the environment, too.
fn numbered(name: &OsStr) -> PathBuf {
    match name.to_str() {
        Some(name) => name.replace("%p", &process::id().to_string()).into(),
        None => name.into(),
    }
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("must be 0 or 1".into()),
    }
}

/// 0 is never.
fn time(text: &str, unit: fn(u64) -> Duration) -> Result<Option<Duration>, String> {
    let number: u64 = text
        .parse()
        .map_err(|_| "must be a whole number; 0 is never")?;
    Ok((number > 0).then(|| unit(number)))
}

fn agents(text: &str) -> Result<Wanted, String> {
    if text == "all" {
        return Ok(Wanted::All);
    }
    let numbers = text.split(',').map(|number| number.trim().parse());
    let numbers: Result<_, _> = numbers.collect();
    numbers
        .map(Wanted::Some)
        .map_err(|_| "must be all, or GPUs' numbers, as in 0,2".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Result<Settings, String> {
        let name = format!("{PREFIX}{name}");
        let others = [("PATH", "x"), (name.as_str(), value)];
        Settings::from(others.into_iter().map(|(n, v)| (n.into(), v.into())))
    }

    #[test]
    fn a_wrong_value_is_named_with_its_variable_and_so_is_an_unknown_variable() {
        for (name, value) in [
            ("PAUSED", "yes"),
            ("AGENTS", "0,x"),
            ("AGENTS", "-1"),
            ("STALL_MS", "1.5"),
            ("STALL_POLICY", "ignore"),
            ("TOGGLE_US", "-3"),
            ("QUIET", "2"),
            ("OUTPT", "file"),
        ] {
            let error = with(name, value).unwrap_err();
            let named = format!("{PREFIX}{name}={value}: ");
            assert!(error.starts_with(&named), "{error}");
        }
    }

    #[test]
    fn what_is_not_set_or_set_to_nothing_is_the_default() {
        assert_eq!(with("QUIET", ""), Ok(Settings::default()));
        assert_eq!(with("STALL_MS", "0").unwrap().stall, None);
        let toggle = with("TOGGLE_US", "7").unwrap().toggle;
        assert_eq!(toggle, Some(Duration::from_micros(7)));
        let agents = with("AGENTS", "2, 0").unwrap().agents;
        assert_eq!(agents, Wanted::Some(vec![2, 0]));
        assert_eq!(
            with("STALL_POLICY", "report").unwrap().policy,
            StallPolicy::Report
        );
        assert!(with("PAUSED", "1").unwrap().paused);
    }

    #[test]
    fn a_files_name_may_have_the_processs_number() {
        let output = with("OUTPUT", "a-%p.csv").unwrap().output;
        assert_eq!(output, PathBuf::from(format!("a-{}.csv", process::id())));
    }
}
