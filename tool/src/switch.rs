//! On and off: what was said last counts, by whomever, before the runtime is started as well as in the
//! middle of kernels, and through all rounds of starting and shutting down.

use crate::session::{self, Session};
use crate::{lock, process};
use std::sync::{Arc, Mutex};

/// What was said last. While nothing was, the environment decides.
static SAID: Mutex<Option<bool>> = Mutex::new(None);

/// Serializes from now on, or no longer. It does not wait for the kernels that are under way: the
/// serializer lets nothing of the new mode begin before these have ended.
///
/// # Errors
/// In a child of the process; where the runtime has no signal left. Then nothing has changed.
pub(crate) fn set(on: bool) -> Result<(), String> {
    if process::is_child() {
        return Err("nothing is serialized in a child of the process".into());
    }
    let mut said = lock(&SAID);
    if let Some(session) = session::current() {
        session.profiler.serialize(on).map_err(|e| e.to_string())?;
        if !on {
            // Who pauses wants to look at what there is.
            session.profiler.trace.flush();
        }
    }
    *said = Some(on);
    Ok(())
}

/// Makes a session the current one, in the mode that is due.
pub(crate) fn install(session: Arc<Session>, by_default: bool) -> Result<(), String> {
    // Held until the session is there: who says something now reaches it, or is heard of here.
    let said = lock(&SAID);
    let on = said.unwrap_or(by_default);
    session.profiler.serialize(on).map_err(|e| e.to_string())?;
    session::set_current(Some(session));
    Ok(())
}
