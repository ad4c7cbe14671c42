//! What is under test: the serializer, or barriers by themselves.

use crate::operation::Kind;
use crate::runtime::Shared;
use hsa_serializer::{
    AddQueueError, BarrierSet, Builder, CompleteError, Completion, Queue, QueueId, Serializer,
    Statistics, Ticket, UnknownQueue,
};

/// See the [module](self).
#[derive(Debug)]
pub(crate) enum Subject {
    Serializer(Serializer<Shared>),
    Set(BarrierSet<Shared>),
}

impl Subject {
    pub(crate) fn new(kind: Kind, builder: Builder, runtime: Shared) -> Self {
        match kind {
            Kind::Serializer => Self::Serializer(builder.build(runtime)),
            Kind::BarrierSet => Self::Set(BarrierSet::with(builder, runtime)),
        }
    }

    pub(crate) fn add_queue(&self) -> Result<Queue<Shared>, AddQueueError> {
        match self {
            Self::Serializer(s) => s.add_queue(),
            Self::Set(s) => s.add_queue(),
        }
    }

    pub(crate) fn complete(&self, ticket: Ticket) -> Result<Completion, CompleteError> {
        match self {
            Self::Serializer(s) => s.complete(ticket),
            Self::Set(s) => s.complete(ticket),
        }
    }

    pub(crate) fn queue_destroyed(&self, queue: QueueId) -> Result<(), UnknownQueue> {
        match self {
            Self::Serializer(s) => s.queue_destroyed(queue),
            Self::Set(s) => s.queue_destroyed(queue),
        }
    }

    pub(crate) fn collect(&self) {
        match self {
            Self::Serializer(s) => s.collect(),
            Self::Set(s) => s.collect(),
        }
    }

    pub(crate) fn statistics(&self) -> Statistics {
        match self {
            Self::Serializer(s) => s.statistics(),
            Self::Set(s) => s.statistics(),
        }
    }
}
