//! What must hold for every model in the registry and every sequence of requests.

use super::*;
use crate::model::Served;
use proptest::prelude::*;

/// Sizes in which random requests meet, fill caches and cross borders.
const SIZES: [(&str, &str); 5] =
    [("capacity", "256MiB"), ("zone", "4MiB"), ("band", "8MiB"), ("map", "20"), ("track", "64KiB")];

/// Every model in these sizes, and every word that one of its parameters can be.
fn small() -> Vec<String> {
    let mut texts = Vec::new();
    for descriptor in registry() {
        let mut of = Vec::new();
        for (name, size) in SIZES {
            let is_known = descriptor.parameters.iter().any(|parameter| parameter.name == name);
            of.extend(is_known.then(|| format!("{name}={size}")));
        }
        let mut choices = vec![String::new()];
        for parameter in descriptor.parameters {
            if let Kind::Choice(words) = parameter.kind {
                choices.extend(words.iter().map(|word| format!("{}={word},", parameter.name)));
            }
        }
        let is_array = of.is_empty();
        let rest = if is_array { "member=hdd:capacity=256MiB".into() } else { of.join(",") };
        texts.extend(choices.iter().map(|choice| format!("{}:{choice}{rest}", descriptor.name)));
    }
    texts
}

/// Access, where in the device (256 MiB and a little more), sectors, and the host's thinking time.
type Step = (u8, u64, u64, u64);

fn step() -> impl Strategy<Value = Step> {
    let offset = prop_oneof![0u64..16, 0u64..66_000, Just(10_240)];
    let sectors = prop_oneof![4 => 1u64..8, 1 => 0u64..2_000];
    let thinking_ns = prop_oneof![3 => 0u64..100_000, 1 => 0u64..3_000_000_000];
    (0u8..10, offset, sectors, thinking_ns)
}

/// The requests as they reach the device, with its answers; an error is `None`.
fn run(model: &mut dyn Model, steps: &[Step]) -> Vec<(Request, Option<Served>)> {
    let mut at_ns = 0;
    let mut answers = Vec::new();
    for &(kind, sector, sectors, thinking_ns) in steps {
        let access = match kind {
            0..=2 => Access::Read,
            3..=6 => Access::Write,
            7 => Access::Flush,
            8 => Access::Discard,
            _ if sector % 2 == 0 => Access::ResetZone,
            _ => Access::FinishZone,
        };
        at_ns += thinking_ns;
        let (offset, bytes) = (sector * 4096, sectors * 4096);
        let request = Request { access, offset, bytes, at_ns };
        let served = model.serve(&request).ok();
        at_ns = served.as_ref().map_or(at_ns, |served| served.free_ns);
        answers.push((request, served));
    }
    answers
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn time_never_runs_backwards_and_the_same_requests_get_the_same_answers(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        for text in small() {
            let answers = run(&mut *make(&text).unwrap(), &steps);
            for (request, served) in &answers {
                let Some(served) = served else { continue };
                prop_assert!(served.done_ns >= request.at_ns, "{text}");
                prop_assert!(served.free_ns >= request.at_ns, "{text}");
            }
            let again = run(&mut *make(&text).unwrap(), &steps);
            prop_assert_eq!(&again, &answers);
        }
    }

    #[test]
    fn a_refused_request_changes_nothing(steps in prop::collection::vec(step(), 1..60)) {
        for text in small() {
            let answers = run(&mut *make(&text).unwrap(), &steps);
            let mut model = make(&text).unwrap();
            for (request, served) in answers.iter().filter(|(_, served)| served.is_some()) {
                prop_assert_eq!(&model.serve(request).ok(), served);
            }
        }
    }
}
