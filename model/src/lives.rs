//! One serializer after the other: where one ends, a new one goes on, and the old one is still
//! called by whoever has not heard of it.

use crate::fault::Fault;
use crate::operation::{Case, Operation};
use crate::run::Run;
use crate::tally::Tally;
use crate::violation::{Checked, Violation};

/// Serializers of one case.
const LIVES: usize = 4;

/// Carries a case out, checks everything after every step, and tells what was exercised.
///
/// # Errors
/// The first violation. A panic of the serializer's goes through.
pub fn run(case: &Case) -> Result<Tally, Violation> {
    run_with(case, None)
}

/// The same with a planted fault.
///
/// # Errors
/// The first violation.
pub fn run_with(case: &Case, fault: Option<Fault>) -> Result<Tally, Violation> {
    let mut lives = Lives {
        lives: vec![Run::new(case.setup, fault)],
        now: 0,
    };
    for (i, &operation) in case.operations.iter().enumerate() {
        lives.apply(operation).map_err(|violation| Violation {
            step: Some((i, operation)),
            ..violation
        })?;
    }
    let mut tally = Tally::default();
    tally.cases += 1;
    for life in lives.lives {
        tally.add(&life.finish()?);
    }
    Ok(tally)
}

struct Lives {
    lives: Vec<Run>,
    /// The one that operations go to.
    now: usize,
}

impl Lives {
    fn apply(&mut self, operation: Operation) -> Checked {
        match operation {
            Operation::Fresh => {
                self.fresh();
                Ok(())
            }
            Operation::Switch { choice } => {
                self.now = usize::from(choice) % self.lives.len();
                Ok(())
            }
            _ => self.lives[self.now].step(operation),
        }
    }

    fn fresh(&mut self) {
        let old = &self.lives[self.now];
        if self.lives.len() == LIVES || !old.world().model.shut_down() {
            return;
        }
        let fresh = Run::new(old.setup, old.fault);
        fresh.world().tally.fresh += 1;
        self.now = self.lives.len();
        self.lives.push(fresh);
    }
}
