//! What keeps a serializer: the serializer itself, a queue's dispatching half, a watch, a cut.
//!
//! What is deferred holds the shared state, too, and runs only if somebody sees to it. The last handle
//! does, after every other one: a handle is given up when its holder's last pin has ended, so when the
//! last one goes, none of them holds reclamation back any more. What still may are other serializers'
//! threads in the same [`Domain`](crate::Domain), and a thread that is ending.

use crate::runtime::Runtime;
use crate::shared::Shared;
use crate::sync::Ordering;
use std::ops::Deref;
use std::sync::Arc;

/// See the [module](self).
pub(crate) struct Handle<R: Runtime>(Arc<Shared<R>>);

impl<R: Runtime> Handle<R> {
    pub(crate) fn new(shared: Arc<Shared<R>>) -> Self {
        // Relaxed: as for the count of an `Arc`, whoever adds to it has the state already.
        shared.handles.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }
}

impl<R: Runtime> Clone for Handle<R> {
    fn clone(&self) -> Self {
        Self::new(self.0.clone())
    }
}

impl<R: Runtime> Deref for Handle<R> {
    type Target = Arc<Shared<R>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<R: Runtime> Drop for Handle<R> {
    fn drop(&mut self) {
        // AcqRel: the last one comes after all that the others did, their pins among it.
        if self.0.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.domain.drain();
            self.0.collect();
        }
    }
}
