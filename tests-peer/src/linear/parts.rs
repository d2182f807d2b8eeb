//! Splits a history into unrelated parts.
//!
//! Linearizability is local (Herlihy and Wing): a history is linearizable if and only if that of
//! each object is. An object is here a set of cells that no step connects with any others; so each
//! is judged separately, and a search never backtracks through the choices of another one.

use super::history::Step;

/// Returns the steps of each object, in order.
pub fn parts(steps: &[Step], cells: usize) -> Vec<Vec<Step>> {
    let mut groups = Groups((0..cells).collect());
    for step in steps {
        let (reads, writes) = step.action.cells();
        let first = if reads.is_empty() { writes.start } else { reads.start };
        for cell in reads.chain(writes) {
            groups.join(first, cell);
        }
    }
    let mut parts: Vec<Vec<Step>> = vec![Vec::new(); cells];
    for step in steps {
        let (reads, writes) = step.action.cells();
        if let Some(cell) = reads.chain(writes).next() {
            parts[groups.of(cell)].push(step.clone());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// A union-find structure: for each cell another one of its group, or itself.
struct Groups(Vec<usize>);

impl Groups {
    fn of(&mut self, mut cell: usize) -> usize {
        while self.0[cell] != cell {
            self.0[cell] = self.0[self.0[cell]];
            cell = self.0[cell];
        }
        cell
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.of(one), self.of(other));
        self.0[other] = one;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear::history::Action;

    #[test]
    fn cells_that_a_step_connects_form_one_part() {
        let action = |action| Step { action, start: 0, end: 1, certain: true, command: 0 };
        let write = |at, count| action(Action::Write { at, values: vec![1; count] });
        let copy = action(Action::Copy { from: 1, to: 9, count: 1 });
        let steps = [write(0, 2), write(4, 1), copy, write(9, 3), write(11, 1), write(2, 1)];
        let parts = parts(&steps, 12);
        let sizes: Vec<usize> = parts.iter().map(Vec::len).collect();
        assert_eq!(parts.concat().len(), steps.len());
        assert_eq!(sizes, [4, 1, 1]);
        assert_eq!(parts[0][3], steps[4], "in their order");
    }
}
