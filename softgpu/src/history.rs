//! What became of each handle: the last few events, for reports.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;

/// So many events of a handle are kept.
const KEPT: usize = 8;

/// One event in a handle's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: u64,
    /// The handle's generation: how often it had been created.
    pub generation: u64,
    /// What.
    pub what: What,
}

/// What happened to a handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Created with this value and label.
    Created(i64, Cow<'static, str>),
    /// Destroyed holding this value.
    Destroyed(i64),
    /// Its owner said something about it.
    Noted(Cow<'static, str>),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} at {} ns: ", self.generation, self.at)?;
        match &self.what {
            What::Created(value, label) if label.is_empty() => write!(f, "created as {value}"),
            What::Created(value, label) => write!(f, "created as {value} for {label}"),
            What::Destroyed(value) => write!(f, "destroyed at {value}"),
            What::Noted(note) => write!(f, "{note}"),
        }
    }
}

/// The events of one handle.
#[derive(Debug, Default)]
pub(crate) struct History {
    events: VecDeque<Event>,
    label: Cow<'static, str>,
}

impl History {
    pub(crate) fn add(&mut self, event: Event) {
        if let What::Created(_, label) = &event.what {
            self.label = label.clone();
        }
        if self.events.len() == KEPT {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.events.iter().cloned().collect()
    }

    pub(crate) fn label(&self) -> String {
        self.label.to_string()
    }
}
