//! What a user may have meant by a name that does not exist.

/// Most names that are suggested.
const MOST: usize = 3;

/// Names that differ from `name` in few characters, nearest first, then those that contain it, as
/// that of a container does (`nginx@0123456789ab`); three at most.
pub fn near<'a>(name: &str, all: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let few = (name.chars().count() / 3).max(1);
    let rank = |other: &str| match strsim::damerau_levenshtein(name, other) {
        distance if distance <= few => Some(distance),
        _ if !name.is_empty() && other.contains(name) => Some(usize::MAX),
        _ => None,
    };
    let ranked = all.into_iter().filter_map(|one| Some((rank(one)?, one)));
    let mut near: Vec<(usize, &str)> = ranked.collect();
    near.sort_unstable();
    near.into_iter().map(|(_, one)| one).take(MOST).collect()
}

/// The question whether one of these was meant, in brackets; empty without any.
pub fn did_you_mean<T: AsRef<str>>(near: &[T]) -> String {
    let quoted = near.iter().map(|one| format!("`{}`", one.as_ref()));
    let quoted: Vec<String> = quoted.collect();
    if quoted.is_empty() {
        return String::new();
    }
    format!(" (did you mean {}?)", quoted.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_comes_first_and_what_contains_it_last() {
        let all = [
            "apache2",
            "nginx@0123456789ab",
            "nginy",
            "nginx-dev",
            "nginx",
        ];
        assert_eq!(near("nginx", all), ["nginx", "nginy", "nginx-dev"]);
        assert_eq!(near("ngnix", all), ["nginx"]);
        assert_eq!(near("web", all), [""; 0]);
        assert_eq!(near("", all), [""; 0]);
    }

    #[test]
    fn the_question_names_each() {
        assert_eq!(did_you_mean::<&str>(&[]), "");
        assert_eq!(did_you_mean(&["a", "b"]), " (did you mean `a` or `b`?)");
    }
}
