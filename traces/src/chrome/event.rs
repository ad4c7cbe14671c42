//! One event of a Chrome trace: a kernel, something to skip, or a fault.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::collect::Found;
use crate::text::snippet;
use crate::{ErrorKind, Reason, time};

/// The categories of kernels, as PyTorch's profiler writes them (`kernel`, before 1.12 `Kernel`)
/// and other tools do.
const KERNELS: [&str; 4] = ["kernel", "Kernel", "gpu_kernel", "gpu_op"];
/// Those of copies and fills, likewise.
const COPIES: [&str; 4] = ["gpu_memcpy", "gpu_memset", "Memcpy", "Memset"];

/// What an event is.
pub(super) enum Outcome<'a> {
    Kernel(Kernel<'a>),
    Skip(Reason),
}

/// A kernel's fields.
pub(super) struct Kernel<'a> {
    name: Cow<'a, str>,
    agent: Cow<'a, str>,
    queue: Cow<'a, str>,
    start_ns: u64,
    end_ns: u64,
}

impl Kernel<'_> {
    pub(super) fn found(&self, index: u64, line: u64) -> Found<'_> {
        Found {
            name: &self.name,
            agent: &self.agent,
            queue: &self.queue,
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            index,
            line,
        }
    }
}

/// What is wrong with an event, and at which value if it is one that is there.
pub(super) struct Fault<'a> {
    pub(super) at: Option<&'a RawValue>,
    pub(super) kind: ErrorKind,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    ph: Option<&'a RawValue>,
    cat: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    ts: Option<&'a RawValue>,
    dur: Option<&'a RawValue>,
    pid: Option<&'a RawValue>,
    tid: Option<&'a RawValue>,
    args: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Args<'a> {
    #[serde(borrow)]
    device: Option<&'a RawValue>,
    stream: Option<&'a RawValue>,
}

pub(super) fn read(value: &RawValue, copies: bool) -> Result<Outcome<'_>, Fault<'_>> {
    let event: Event<'_> = object(value)?;
    let category = event.cat.map(|cat| text("cat", Some(cat))).transpose()?;
    let category = category.as_deref();
    let wanted =
        category.is_some_and(|cat| KERNELS.contains(&cat) || (copies && COPIES.contains(&cat)));
    if event.ph.is_none() && !wanted {
        return Ok(Outcome::Skip(Reason::NoPhase));
    }
    let phase = text("ph", event.ph)?;
    let reason = match (&*phase, category) {
        ("X", _) if wanted => return kernel(&event).map(Outcome::Kernel),
        ("X", Some(category)) => Reason::Category(category.to_owned()),
        ("X", None) => Reason::NoCategory,
        ("B" | "E", _) if wanted => Reason::KernelHalf,
        (phase, _) => Reason::Phase(phase.to_owned()),
    };
    Ok(Outcome::Skip(reason))
}

fn kernel<'a>(event: &Event<'a>) -> Result<Kernel<'a>, Fault<'a>> {
    let args = event
        .args
        .map(object::<Args<'_>>)
        .transpose()?
        .unwrap_or_default();
    let start_ps = micros("ts", event.ts)?;
    let end_ps = start_ps + micros("dur", event.dur)?;
    if end_ps > time::LAST_PS {
        return Err(field(
            "dur",
            "an end (`ts` + `dur`) of at most 18446744073709551.615 microseconds",
            event.dur,
        ));
    }
    Ok(Kernel {
        name: text("name", event.name)?,
        agent: match (args.device, event.pid) {
            (None, Some(pid)) => identity("pid", Some(pid)),
            (device, _) => identity("args.device", device),
        }?,
        queue: match (args.stream, event.tid) {
            (None, Some(tid)) => identity("tid", Some(tid)),
            (stream, _) => identity("args.stream", stream),
        }?,
        start_ns: time::ps_to_ns(start_ps),
        end_ns: time::ps_to_ns(end_ps),
    })
}

fn object<'a, T: Deserialize<'a>>(value: &'a RawValue) -> Result<T, Fault<'a>> {
    // A list would do for serde: it would be taken for the fields in order.
    let result = if value.get().starts_with('{') {
        serde_json::from_str(value.get()).map_err(|error| super::message(&error))
    } else {
        Err(format!(
            "expected an object, found {}",
            snippet(value.get())
        ))
    };
    result.map_err(|message| Fault {
        at: Some(value),
        kind: ErrorKind::Event { message },
    })
}

fn field<'a>(
    field: &'static str,
    expected: &'static str,
    value: Option<&'a RawValue>,
) -> Fault<'a> {
    let found = match value {
        None => "nothing".to_owned(),
        // Strings have their quotes already.
        Some(value) => snippet(string(value).as_deref().unwrap_or(value.get())),
    };
    Fault {
        at: value,
        kind: ErrorKind::Field {
            field,
            expected: expected.into(),
            found,
        },
    }
}

/// The text of a JSON string.
fn string(value: &RawValue) -> Option<Cow<'_, str>> {
    let inner = value.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(value.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

fn text<'a>(name: &'static str, value: Option<&'a RawValue>) -> Result<Cow<'a, str>, Fault<'a>> {
    value
        .and_then(string)
        .ok_or_else(|| field(name, "a string", value))
}

/// A time, as a number or as a string of one.
fn micros<'a>(name: &'static str, value: Option<&'a RawValue>) -> Result<u128, Fault<'a>> {
    let expected = "microseconds from 0 to 18446744073709551.615";
    value
        .and_then(|value| match string(value) {
            Some(text) => time::micros_to_ps(&text),
            None => time::micros_to_ps(value.get()),
        })
        .ok_or_else(|| field(name, expected, value))
}

/// What identifies a device or a stream: a whole number, or a string.
fn identity<'a>(
    name: &'static str,
    value: Option<&'a RawValue>,
) -> Result<Cow<'a, str>, Fault<'a>> {
    let whole = |value: &'a RawValue| {
        let digits = value.get().strip_prefix('-').unwrap_or(value.get());
        digits
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then_some(Cow::Borrowed(value.get()))
    };
    value
        .and_then(|value| string(value).or_else(|| whole(value)))
        .filter(|identity| !identity.is_empty())
        .ok_or_else(|| field(name, "a whole number or a name", value))
}
