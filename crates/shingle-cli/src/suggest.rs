//! The option that a wrong name may mean. clap does the same for commands and flags.

use shingle::Expert;
use shingle::options::OptionEntry;

/// Names that are less alike are not suggested. clap's bound for flags is the same.
const LIKENESS_MIN: f64 = 0.7;

/// What helps after the option `name` was refused.
pub fn help_of_option(name: &str) -> String {
    const LIST: &str = "`shingle options` lists options and their values";
    let known = OptionEntry::all().map(|entry| entry.name);
    let known = known.chain(Expert::parameter_units().map(|(name, _)| name));
    match most_like(name, known) {
        Some(other) => format!("did you mean `{other}`? {LIST}"),
        None => LIST.into(),
    }
}

/// The known name that is most like `name`. `None` if `name` is known, or no name is like it.
fn most_like<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |other: &'a str| (strsim::jaro(name, other), other);
    let (most, other) = known.map(likeness).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (other != name && most > LIKENESS_MIN).then_some(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_brings_the_option_that_is_most_like_it() {
        let said = |name: &str| help_of_option(name);
        assert!(said("shceme").starts_with("did you mean `scheme`? "), "{}", said("shceme"));
        assert!(said("memory-bytes").starts_with("did you mean `memory_bytes`? "));
        assert!(said("fanout").starts_with("did you mean `fan_out`? "), "{}", said("fanout"));
        for name in ["zzz", "", "scheme"] {
            assert!(said(name).starts_with("`shingle options`"), "{name}: {}", said(name));
        }
    }
}
