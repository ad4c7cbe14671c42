//! A Chrome trace: the list of events is walked without being held, and only a kernel's own fields
//! are looked into.
//!
//! Every value is borrowed from the text as it stands there ([`RawValue`]), so its address gives
//! its line.

mod event;

use std::fmt;

use serde::Deserializer as _;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use self::event::{Fault, Outcome};
use crate::collect::Collector;
use crate::lines::{Lines, line_at};
use crate::{ErrorKind, Format, Trace, TraceError};

const EVENTS: &str = "traceEvents";

pub(crate) fn parse(file: &str, text: &str, copies: bool) -> Result<Trace, TraceError> {
    let mut events = Events {
        file,
        text,
        copies,
        lines: Lines::default(),
        index: 0,
        collector: Collector::default(),
        error: None,
    };
    let mut json = serde_json::Deserializer::from_str(text);
    let result = json
        .deserialize_any(Document(&mut events))
        .and_then(|found| {
            json.end()?;
            Ok(found)
        });
    match result {
        Ok(true) => events.collector.finish(file, Format::ChromeTrace),
        Ok(false) => {
            let found = format!("a JSON object without `{EVENTS}`");
            Err(TraceError::new(file, ErrorKind::Foreign { found }))
        }
        Err(error) => Err(events.error.unwrap_or_else(|| {
            let column = error.column() as u64;
            let kind = ErrorKind::Syntax {
                column,
                message: message(&error),
            };
            TraceError::new(file, kind).at_line(error.line() as u64)
        })),
    }
}

/// What serde_json says, without the place, which the error has on its own.
fn message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(place) => text[..place].to_owned(),
        None => text,
    }
}

/// What is gathered on the walk.
struct Events<'a> {
    file: &'a str,
    text: &'a str,
    copies: bool,
    lines: Lines,
    index: u64,
    collector: Collector,
    /// Why the walk was broken off, if it was not serde_json that did.
    error: Option<TraceError>,
}

impl<'a> Events<'a> {
    fn offset(&self, value: &RawValue) -> usize {
        value.get().as_ptr() as usize - self.text.as_ptr() as usize
    }

    fn add(&mut self, value: &'a RawValue) -> Result<(), TraceError> {
        let start = self.offset(value);
        let line = self.lines.advance(self.text, start);
        match event::read(value, self.copies) {
            Ok(Outcome::Kernel(kernel)) => self.collector.add(&kernel.found(self.index, line)),
            Ok(Outcome::Skip(reason)) => self.collector.skip(reason),
            Err(Fault { at, kind }) => {
                let line = at.map_or(line, |at| line_at(self.text, self.offset(at)));
                return Err(TraceError::new(self.file, kind)
                    .at_line(line)
                    .at_event(self.index));
            }
        }
        self.index += 1;
        Ok(())
    }
}

/// The whole file; gives whether there was a list of events.
struct Document<'e, 'a>(&'e mut Events<'a>);

impl<'a> Visitor<'a> for Document<'_, 'a> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(key) = map.next_key::<String>()? {
            if key != EVENTS {
                map.next_value::<IgnoredAny>()?;
            } else if found {
                return Err(A::Error::duplicate_field(EVENTS));
            } else {
                map.next_value_seed(List(self.0))?;
                found = true;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'a>>(self, seq: A) -> Result<bool, A::Error> {
        List(self.0).visit_seq(seq)?;
        Ok(true)
    }
}

/// The list of events.
struct List<'e, 'a>(&'e mut Events<'a>);

impl<'a> DeserializeSeed<'a> for List<'_, 'a> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'a> Visitor<'a> for List<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of events in `{EVENTS}`")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(value) = seq.next_element::<&'a RawValue>()? {
            if let Err(error) = self.0.add(value) {
                let broken_off = A::Error::custom(&error);
                self.0.error = Some(error);
                return Err(broken_off);
            }
        }
        Ok(())
    }
}
