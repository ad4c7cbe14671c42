//! Forks: the child calls whatever it likes of its copies and drops them, nothing of that reaches the
//! runtime, and it is through in a bounded time, whatever the parent's other threads were doing.

use crate::reign::Reign;
use crate::runtime::{Calls, Watched};
use harness::Reports;
use hsa_serializer::{
    AddQueueError, AqlPacket, Domain, Handler, MAX_PACKETS, Mode, Queue, Serializer, StallPolicy,
    TransitionError,
};
use softgpu::Gpu;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn kill(pid: c_int, signal: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}

const WNOHANG: c_int = 1;
const SIGKILL: c_int = 9;
/// What a child exits with: where the runtime was called, and where a call did not do what it must.
const CALLED: c_int = 100;
const WRONG: c_int = 10;

/// No child takes so long.
const PATIENCE: Duration = Duration::from_secs(20);

static IN_CHILD: AtomicBool = AtomicBool::new(false);

/// Ends a child that calls the runtime.
pub(crate) fn no_call_in_a_child() {
    if IN_CHILD.load(SeqCst) {
        leave(CALLED);
    }
}

/// Ends this process, without anything that is due at its end: that would be the parent's.
fn leave(status: c_int) -> ! {
    // SAFETY: it does not return.
    unsafe { _exit(status) }
}

/// A serializer of the forking thread's own, whose copy in the child is the last one there.
struct Own {
    serializer: Serializer<Watched>,
    queue: Queue<Watched>,
    calls: Arc<Calls>,
}

impl Own {
    /// `None` where the machine has no signals for it.
    fn new(gpu: &Gpu, domain: Domain) -> Option<Self> {
        let calls = Arc::new(Calls::default());
        let runtime = Watched::new(gpu, Reports::default(), calls.clone());
        let serializer = Serializer::<Watched>::builder()
            .domain(domain)
            .build(runtime);
        serializer.runtime().belongs_to(serializer.downgrade());
        let queue = serializer.add_queue().ok()?;
        Some(Self {
            serializer,
            queue,
            calls,
        })
    }
}

/// Forks once, and waits for the child; false where it was not done for want of a signal.
pub(crate) fn fork_once(gpu: &Gpu, domain: Domain, reigns: &[Arc<Reign>]) -> Result<bool, String> {
    let Some(mut own) = Own::new(gpu, domain) else {
        return Ok(false);
    };
    // Half of the time something is armed, and something is in flight.
    let mut inject = [AqlPacket::INVALID; MAX_PACKETS];
    let dispatch = own.queue.dispatch(&mut inject).map_err(|e| e.to_string())?;
    let enabled = own.serializer.enable().is_ok();
    // SAFETY: the child calls the serializer, whose promise that is, the allocator, which the C library
    // makes usable there, and `_exit`.
    let pid = unsafe { fork() };
    if pid == 0 {
        IN_CHILD.store(true, SeqCst);
        let wrong = in_the_child(own, dispatch.ticket, reigns, enabled);
        leave(wrong.map_or(0, |wrong| WRONG + wrong));
    }
    let outcome = match pid {
        -1 => Err("no fork".into()),
        _ => wait_for(pid),
    };
    // The parent's goes on as if nothing had been.
    let _ = own.serializer.complete(dispatch.ticket);
    let finished = own.serializer.finish_shutdown(PATIENCE);
    drop(own.queue);
    let live = own.calls.live.load(SeqCst);
    outcome?;
    finished.map_err(|e| format!("in the parent, after a fork: {e}"))?;
    if live != 0 {
        return Err(format!("{live} signals left in the parent, after a fork"));
    }
    Ok(true)
}

/// The number of the call that did not do what it must.
fn in_the_child(
    mut own: Own,
    ticket: hsa_serializer::Ticket,
    reigns: &[Arc<Reign>],
    enabled: bool,
) -> Option<c_int> {
    let mut inject = [AqlPacket::INVALID; MAX_PACKETS];
    let all = reigns.iter().map(|reign| &reign.serializer);
    for serializer in all.chain([&own.serializer]) {
        let refused = Err(TransitionError::ShutDown);
        let right = [
            serializer.enable() == refused,
            serializer.disable() == refused,
            matches!(serializer.add_queue(), Err(AddQueueError::ShutDown)),
            serializer.finish_shutdown(Duration::ZERO).is_ok(),
        ];
        if let Some(wrong) = right.iter().position(|right| !right) {
            return Some(wrong as c_int);
        }
        let _ = serializer.drain(Duration::ZERO);
        serializer.begin_shutdown();
        serializer.release_all();
        serializer.collect();
        let mut watch = serializer.watch_stalls(Duration::ZERO, StallPolicy::Release);
        watch.check_stalls(Duration::ZERO);
        let _ = serializer.statistics();
        serializer.leave();
    }
    let id = own.queue.id();
    if (own.serializer.mode() == Mode::Enabled) != enabled {
        return Some(20);
    }
    if own.serializer.ready(id) != Handler::Drop {
        return Some(21);
    }
    if own
        .queue
        .dispatch(&mut inject)
        .map(|d| d.ticket.abandon())
        .is_ok()
    {
        return Some(22);
    }
    let _ = own
        .queue
        .gap(&mut inject)
        .map(|marker| marker.ticket.abandon());
    let _ = own.serializer.complete(ticket);
    let _ = own.serializer.queue_destroyed(id);
    drop(own);
    None
}

fn wait_for(pid: c_int) -> Result<(), String> {
    let end = Instant::now() + PATIENCE;
    let mut status = 0;
    loop {
        // SAFETY: the child is ours, and nobody else waits for it.
        match unsafe { waitpid(pid, &mut status, WNOHANG) } {
            0 if Instant::now() < end => thread::sleep(Duration::from_millis(1)),
            0 => {
                // SAFETY: as above; it is not waited for, so the number is still its own.
                unsafe {
                    kill(pid, SIGKILL);
                    waitpid(pid, &mut status, 0);
                }
                return Err(format!("a child hung for {PATIENCE:?}"));
            }
            got if got == pid && status == 0 => return Ok(()),
            got if got == pid => {
                let (code, signal) = (status >> 8 & 0xff, status & 0x7f);
                return Err(format!(
                    "a child exited with {code}, signal {signal} ({CALLED}: it called the runtime)"
                ));
            }
            _ => return Err("a child can't be waited for".into()),
        }
    }
}
