//! The shadow's signals and handlers.

use super::violation::{Checked, Rule, ensure};
use hsa_sys::{SignalCondition, hsa_signal_t};
use softgpu::SignalPool;
use std::collections::BTreeMap;

#[derive(Debug)]
struct Slot {
    value: i64,
    alive: bool,
    interrupt: bool,
}

/// A handler that is registered.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) id: u64,
    pub(crate) signal: hsa_signal_t,
    pub(crate) condition: SignalCondition,
    pub(crate) compare: i64,
}

/// Values by handle. A destroyed signal's memory is still there, and still written.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    slots: BTreeMap<u64, Slot>,
    /// Every handle that was ever given out, once each.
    pub(crate) given: Vec<hsa_signal_t>,
    pub(crate) listeners: Vec<Listener>,
}

impl Signals {
    /// What a packet finds; a handle that nobody gave out reads as 0.
    pub(crate) fn value(&self, signal: hsa_signal_t) -> i64 {
        self.slots.get(&signal.handle).map_or(0, |slot| slot.value)
    }

    pub(crate) fn known(&self, signal: hsa_signal_t) -> bool {
        self.slots.contains_key(&signal.handle)
    }

    pub(crate) fn alive(&self, signal: hsa_signal_t) -> bool {
        self.slots
            .get(&signal.handle)
            .is_some_and(|slot| slot.alive)
    }

    pub(crate) fn set(&mut self, signal: hsa_signal_t, value: i64) {
        if let Some(slot) = self.slots.get_mut(&signal.handle) {
            slot.value = value;
        }
    }

    pub(crate) fn subtract(&mut self, signal: hsa_signal_t, n: i64) {
        self.set(signal, self.value(signal).wrapping_sub(n));
    }

    pub(crate) fn live(&self) -> usize {
        self.slots.values().filter(|slot| slot.alive).count()
    }

    pub(crate) fn live_interrupt(&self) -> usize {
        let live = self.slots.values().filter(|slot| slot.alive);
        live.filter(|slot| slot.interrupt).count()
    }

    pub(crate) fn created(&mut self, signal: hsa_signal_t, value: i64, interrupt: bool) -> Checked {
        let fresh = !signal.is_null() && !self.alive(signal);
        ensure(fresh, Rule::Answer, || {
            format!("the handle {:#x} was given out while alive", signal.handle)
        })?;
        let slot = Slot {
            value,
            alive: true,
            interrupt,
        };
        if self.slots.insert(signal.handle, slot).is_none() {
            self.given.push(signal);
        }
        Ok(())
    }

    /// Whether it was alive.
    pub(crate) fn destroyed(&mut self, signal: hsa_signal_t) -> bool {
        self.listeners.retain(|listener| listener.signal != signal);
        let slot = self.slots.get_mut(&signal.handle);
        slot.is_some_and(|slot| std::mem::take(&mut slot.alive))
    }

    /// Takes over the value of one that may have changed in more ways than one.
    pub(crate) fn resync(&mut self, signal: hsa_signal_t, pool: &SignalPool) {
        if self.known(signal) {
            self.set(signal, pool.load(signal));
        }
    }

    /// Every signal has the value that it should have. One that is destroyed is asked for only where
    /// `all` are: the GPU notes each such look.
    pub(crate) fn agree(&self, pool: &SignalPool, all: bool) -> Checked {
        for (handle, slot) in &self.slots {
            let signal = hsa_signal_t { handle: *handle };
            ensure(pool.is_alive(signal) == slot.alive, Rule::Answer, || {
                format!("signal {handle:#x} is alive: {}", !slot.alive)
            })?;
            if slot.alive || all {
                let found = pool.load(signal);
                ensure(found == slot.value, Rule::Signals, || {
                    format!("signal {handle:#x} is {found}, not {}", slot.value)
                })?;
            }
        }
        Ok(())
    }
}
