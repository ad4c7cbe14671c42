//! Signals, whose handles are given out again last in, first out, as HSA does.

use hsa_serializer::hsa_signal_t;

#[derive(Clone, Copy, Debug)]
struct Signal {
    value: i64,
    alive: bool,
    /// Which of the signals that had this handle it is.
    life: u32,
    /// Packets that refer to it and have not executed.
    packets: u32,
}

/// A packet's reference to a signal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference {
    slot: usize,
    life: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Signals {
    signals: Vec<Signal>,
    free: Vec<usize>,
}

fn slot(signal: hsa_signal_t) -> Option<usize> {
    usize::try_from(signal.handle).ok()?.checked_sub(1)
}

/// What was done to a signal that does not allow it.
pub(crate) type Breach = Result<(), &'static str>;

impl Signals {
    pub(crate) fn create(&mut self, value: i64) -> hsa_signal_t {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.signals.push(Signal {
                value,
                alive: false,
                life: 0,
                packets: 0,
            });
            self.signals.len() - 1
        });
        let signal = &mut self.signals[slot];
        (signal.value, signal.alive) = (value, true);
        signal.life += 1;
        hsa_signal_t {
            handle: slot as u64 + 1,
        }
    }

    pub(crate) fn destroy(&mut self, signal: hsa_signal_t) -> Breach {
        let slot = slot(signal).ok_or("the null signal was destroyed")?;
        let signal = &mut self.signals[slot];
        if !signal.alive {
            return Err("a signal was destroyed twice");
        }
        if signal.packets > 0 {
            return Err("a signal was destroyed under an unexecuted packet");
        }
        signal.alive = false;
        self.free.push(slot);
        Ok(())
    }

    /// The signal's value, to be read or written.
    pub(crate) fn value(&mut self, signal: hsa_signal_t) -> Result<&mut i64, &'static str> {
        let slot = slot(signal).ok_or("the null signal was used")?;
        let signal = &mut self.signals[slot];
        if signal.alive {
            Ok(&mut signal.value)
        } else {
            Err("a destroyed signal was used")
        }
    }

    /// A packet that refers to these signals is written to a queue.
    pub(crate) fn refer(
        &mut self,
        [signal, escape]: [hsa_signal_t; 2],
    ) -> Result<[Reference; 2], &'static str> {
        Ok([self.refer_to(signal)?, self.refer_to(escape)?])
    }

    fn refer_to(&mut self, signal: hsa_signal_t) -> Result<Reference, &'static str> {
        self.value(signal)?;
        let slot = slot(signal).ok_or("the null signal was used")?;
        self.signals[slot].packets += 1;
        let life = self.signals[slot].life;
        Ok(Reference { slot, life })
    }

    /// What the packet processor sees: one of them is 0.
    pub(crate) fn is_met(&self, references: [Reference; 2]) -> bool {
        let is_met = |r: &Reference| self.signals[r.slot].value == 0;
        references.iter().any(is_met)
    }

    /// The packet has executed, or its queue was destroyed.
    pub(crate) fn let_go(&mut self, references: [Reference; 2], counts_down: bool) -> Breach {
        if counts_down {
            self.signals[references[0].slot].value -= 1;
        }
        for reference in references {
            let signal = &mut self.signals[reference.slot];
            signal.packets -= 1;
            if !signal.alive || signal.life != reference.life {
                return Err("a packet waited for a signal that is another one by now");
            }
        }
        Ok(())
    }

    pub(crate) fn alive(&self) -> usize {
        self.signals.iter().filter(|s| s.alive).count()
    }
}
