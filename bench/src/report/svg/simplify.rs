//! Long series in as few points as can be seen.

/// Points in pixels, ascending by x: of more than two in one column of pixels the lowest and the highest remain, in
/// their order, so that no peak is lost.
pub fn simplify(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let columns = points.chunk_by(|a, b| a.0.floor() == b.0.floor());
    columns.flat_map(|column| if column.len() > 2 { extremes(column) } else { column.to_vec() }).collect()
}

fn extremes(column: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let of = |least: fn(f64, f64) -> bool| {
        (1..column.len())
            .fold(0, |best, index| if least(column[index].1, column[best].1) { index } else { best })
    };
    let (low, high) = (of(|a, b| a < b), of(|a, b| a > b));
    if low == high { vec![column[low]] } else { vec![column[low.min(high)], column[low.max(high)]] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_keeps_its_lowest_and_highest_in_order() {
        let points = [(0.1, 5.0), (0.2, 9.0), (0.3, 1.0), (0.9, 4.0), (1.0, 2.0), (1.5, 3.0)];
        assert_eq!(simplify(&points), [(0.2, 9.0), (0.3, 1.0), (1.0, 2.0), (1.5, 3.0)]);
    }

    #[test]
    fn a_flat_column_is_one_point() {
        assert_eq!(simplify(&[(0.1, 5.0), (0.2, 5.0), (0.3, 5.0)]), [(0.1, 5.0)]);
    }

    #[test]
    fn a_hundred_thousand_points_become_two_for_each_column() {
        let points: Vec<_> =
            (0..100_000).map(|i| (f64::from(i) / 200.0, f64::from(i * 7919 % 1000))).collect();
        let simple = simplify(&points);
        assert!(simple.len() <= 1000, "{}", simple.len());
        assert!(simple.iter().any(|p| p.1 == 0.0) && simple.iter().any(|p| p.1 == 999.0));
    }
}
