/// Two rates as a ratio of whole numbers in lowest terms, to a thousandth of a hertz.
pub(crate) fn ratio(a: f64, b: f64) -> (u64, u64) {
    let [a, b] = [a, b].map(|rate| (1e3 * rate).round().max(1.0) as u64);
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (a / divisor, b / divisor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_in_lowest_terms() {
        assert_eq!((ratio(61.44e6, 20e6), ratio(1e6, 1e6), ratio(0.5, 1e6)), ((384, 125), (1, 1), (1, 2_000_000)));
    }
}
