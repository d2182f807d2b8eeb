//! Histories for other programs: one per line, in JSON.
//!
//! ```text
//! {"name": …, "initial": [value of each cell], "steps": [step, …]}
//! ```
//!
//! A step has `start` and `end` in nanoseconds, `certain`, the number of its `command`, and one of
//! `read`, `write` (`at`, `values`), `compare` (`at`, `expected`, `values`, `swap`: `"done"`,
//! `"unknown"` or the offset of the first byte that differs) and `copy` (`from`, `to`, `count`).

use serde_json::{Value as Json, json};

use super::history::{Action, Step, Swap, Value};

/// Returns the line of a history, without line end.
pub fn line(name: &str, initial: &[Value], steps: &[Step]) -> String {
    let steps: Vec<Json> = steps.iter().map(one).collect();
    json!({ "name": name, "initial": initial, "steps": steps }).to_string()
}

fn one(step: &Step) -> Json {
    let (kind, action) = match &step.action {
        Action::Read { at, values } => ("read", json!({ "at": at, "values": values })),
        Action::Write { at, values } => ("write", json!({ "at": at, "values": values })),
        Action::Compare { at, expected, values, swap } => {
            let swap = match swap {
                Swap::Done => json!("done"),
                Swap::Unknown => json!("unknown"),
                Swap::Miscompare(place) => json!(place),
            };
            let all = json!({ "at": at, "expected": expected, "values": values, "swap": swap });
            ("compare", all)
        }
        Action::Copy { from, to, count } => {
            ("copy", json!({ "from": from, "to": to, "count": count }))
        }
    };
    let Step { start, end, certain, command, .. } = step;
    let mut told = json!({ "start": start, "end": end, "certain": certain, "command": command });
    told[kind] = action;
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_one_line() {
        let step = |action, certain| Step { action, start: 1, end: 2, certain, command: 3 };
        let values = vec![7, 8];
        let compare =
            |swap| Action::Compare { at: 0, expected: vec![0; 2], values: values.clone(), swap };
        let steps = [
            step(Action::Write { at: 4, values: values.clone() }, true),
            step(compare(Swap::Miscompare(512)), true),
            step(compare(Swap::Unknown), false),
            step(Action::Copy { from: 0, to: 4, count: 2 }, true),
        ];
        let text = line("one", &[0; 6], &steps);
        assert!(!text.contains('\n'));
        let told: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(told["initial"], json!([0, 0, 0, 0, 0, 0]));
        assert_eq!(told["steps"][0]["write"], json!({ "at": 4, "values": [7, 8] }));
        assert_eq!(told["steps"][1]["compare"]["swap"], 512);
        assert_eq!(told["steps"][2]["compare"]["swap"], "unknown");
        assert_eq!(told["steps"][2]["certain"], false);
        assert_eq!(told["steps"][3]["copy"]["count"], 2);
    }
}
