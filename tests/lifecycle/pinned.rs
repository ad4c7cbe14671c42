//! A thread that stays pinned in a reclamation domain, as one that was interrupted in the wrong
//! moment does.

use hsa_serializer::{
    Domain, Handler, Queue, QueueId, Runtime, Serializer, SignalKind, hsa_signal_t, hsa_status_t,
};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, mpsc};
use std::thread::{self, JoinHandle};

/// A runtime whose first compare-exchange stays until it may go on.
pub(crate) struct Stays {
    made: AtomicU64,
    held: Mutex<Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>>,
}

impl Runtime for Stays {
    fn create_signal(&self, _: SignalKind, _: i64) -> Result<hsa_signal_t, hsa_status_t> {
        let handle = self.made.fetch_add(1, SeqCst) + 1;
        Ok(hsa_signal_t { handle })
    }

    fn destroy_signal(&self, _: hsa_signal_t) -> Result<(), hsa_status_t> {
        Ok(())
    }

    fn store(&self, _: hsa_signal_t, _: i64) {}

    fn compare_exchange(&self, _: hsa_signal_t, _: i64, _: i64) -> i64 {
        if let Some((entered, until)) = self.held.lock().unwrap().take() {
            entered.send(()).unwrap();
            until.recv().unwrap();
        }
        // As if the handler came too late.
        0
    }

    fn watch_ready(&self, _: hsa_signal_t, _: QueueId) -> Result<(), hsa_status_t> {
        Ok(())
    }
}

/// What is left when a pin has ended. Dropping it reclaims, which the end of the pin does not.
pub(crate) type Left = (Queue<Stays>, Serializer<Stays>);

/// As long as it lives a thread is pinned.
pub(crate) struct Pinned {
    goes_on: mpsc::Sender<()>,
    thread: Option<JoinHandle<Left>>,
}

impl Pinned {
    pub(crate) fn new(domain: &Domain) -> Self {
        let (entered, enters) = mpsc::channel();
        let (goes_on, until) = mpsc::channel();
        let domain = domain.clone();
        let thread = thread::spawn(move || {
            let builder = Serializer::<Stays>::builder().domain(domain);
            let serializer = builder.build(Stays {
                made: AtomicU64::new(0),
                held: Mutex::new(Some((entered, until))),
            });
            let queue = serializer.add_queue().unwrap();
            assert_eq!(serializer.ready(queue.id()), Handler::Keep);
            (queue, serializer)
        });
        enters.recv().unwrap();
        Self {
            goes_on,
            thread: Some(thread),
        }
    }

    /// Ends the pin, and nothing else.
    #[allow(dead_code, reason = "not every program of tests does that")]
    pub(crate) fn ends(mut self) -> Left {
        self.end().unwrap()
    }

    fn end(&mut self) -> Option<Left> {
        let thread = self.thread.take()?;
        self.goes_on.send(()).unwrap();
        Some(thread.join().unwrap())
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        drop(self.end());
    }
}
