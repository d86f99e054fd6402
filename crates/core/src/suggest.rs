//! Help for a reader who mistyped a key: the nearest known one.

/// The entry of `known` closest to `given` by Damerau-Levenshtein distance, or `None` if nothing is
/// close.
///
/// "Close" is at most a third of the longer word, and at least two edits; chosen by us, so that
/// `vicitm` finds `victim` while `colour` does not find `seed`.
pub fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(given, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= (given.len().max(candidate.len()) / 3).max(2))
        .min()
        .map(|(_, candidate)| candidate)
}

/// The one-line error for an unknown key: names the place, the key, and the nearest known key or
/// all of them.
pub fn unknown_key_message(place: &str, given: &str, known: &[&str]) -> String {
    match nearest(given, known) {
        Some(near) => format!("{place}: unknown key '{given}'; did you mean '{near}'?"),
        None => format!("{place}: unknown key '{given}'; known keys are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_fingers_finds_its_key_and_a_stranger_finds_none() {
        let known = ["victim", "collect", "seed"];
        assert_eq!(nearest("vicitm", &known), Some("victim"));
        assert_eq!(nearest("bandwidth_limit", &known), None);
        assert_eq!(
            unknown_key_message("[layout]", "colect", &known),
            "[layout]: unknown key 'colect'; did you mean 'collect'?"
        );
    }
}
