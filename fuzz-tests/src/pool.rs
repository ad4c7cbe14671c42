//! The handles that there are and were, and what is no handle.

use crate::c_abi::Pick;

/// What a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `hsa_serializer_t`, and so on.
    Serializer,
    Queue,
    Domain,
    Agents,
    Request,
    Cut,
    StallWatch,
    BarrierSet,
    Barrier,
}

/// What a handle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Null,
    Foreign,
    Stale,
    Live,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    kind: Kind,
    handle: u64,
    live: bool,
}

/// All of an input.
#[derive(Debug, Default)]
pub(crate) struct Pool(Vec<Entry>);

/// The bits above a handle's number.
const KIND: u64 = 0xff << 56;

impl Pool {
    pub(crate) fn made(&mut self, kind: Kind, handle: u64) {
        let again = self.0.iter().any(|e| e.handle == handle);
        assert!(!again, "{handle:#x} was given twice");
        self.0.push(Entry {
            kind,
            handle,
            live: true,
        });
    }

    pub(crate) fn ended(&mut self, kind: Kind, handle: u64) {
        let entry = self.0.iter_mut().find(|e| e.handle == handle);
        let entry = entry.expect("it was given");
        assert!(entry.live && entry.kind == kind, "{handle:#x} ended twice");
        entry.live = false;
    }

    pub(crate) fn knows(&self, handle: u64) -> bool {
        self.0.iter().any(|e| e.handle == handle)
    }

    pub(crate) fn is_live(&self, handle: u64) -> bool {
        self.0.iter().any(|e| e.handle == handle && e.live)
    }

    /// Those that have not ended.
    pub(crate) fn live(&self, kind: Kind) -> Vec<u64> {
        let live = self.0.iter().filter(|e| e.live && e.kind == kind);
        live.map(|e| e.handle).collect()
    }

    pub(crate) fn pick(&self, kind: Kind, pick: Pick) -> (u64, Standing) {
        let foreign = |handle| (handle, Standing::Foreign);
        let of_kind: Vec<_> = self.0.iter().filter(|e| e.kind == kind).collect();
        let others: Vec<_> = self.0.iter().filter(|e| e.kind != kind).collect();
        let which = usize::from(pick.which);
        match (pick.how % 32, of_kind.as_slice()) {
            (0, _) => (0, Standing::Null),
            // A kind that there is not.
            (1, _) => foreign(u64::from(pick.which) << 56 & KIND | 0xff << 48 | 1),
            (2, _) if !others.is_empty() => foreign(others[which % others.len()].handle),
            // One that the next thing will have, at the earliest.
            (3, [.., _]) => {
                let last = of_kind.iter().map(|e| e.handle).max();
                foreign(last.unwrap_or_default() + 1 + u64::from(pick.which))
            }
            (4, [first, ..]) => foreign(first.handle & KIND | 1 << 32 | u64::from(pick.which)),
            (5, [first, ..]) => foreign(first.handle | !KIND),
            (_, []) => (0, Standing::Null),
            (how, all) => {
                // The latest ones most often.
                let at = if how < 12 {
                    which % all.len()
                } else {
                    all.len() - 1 - which % all.len().min(3)
                };
                let entry = all[at];
                let standing = if entry.live {
                    Standing::Live
                } else {
                    Standing::Stale
                };
                (entry.handle, standing)
            }
        }
    }
}
