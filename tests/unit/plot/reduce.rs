use super::*;

const FRAME: Rect = Rect { x: 100.0, y: 50.0, w: 400.0, h: 200.0 };

#[test]
fn a_million_points_keep_their_extremes_and_become_few() {
    let n = 1_000_000;
    let points: Vec<Point> = (0..n)
        .map(|i| {
            let spike = if i == 123_456 { 90.0 } else { 0.0 };
            (100.0 + 400.0 * i as f64 / n as f64, 150.0 + 5.0 * (i as f64 * 0.7).sin() - spike)
        })
        .collect();
    let pieces = line(points.iter().copied().map(Some), FRAME);
    let drawn: Vec<Point> = pieces.concat();
    assert!(pieces.len() == 1 && drawn.len() <= 4 * 402, "{} pieces, {} points", pieces.len(), drawn.len());
    assert!(drawn.contains(&points[123_456]) && drawn.first() == points.first() && drawn.last() == points.last());

    let scattered = dots(points.iter().copied(), FRAME);
    assert!((10_000..14_000).contains(&scattered.len()), "{}", scattered.len());
    assert!(scattered.contains(&points[123_456]));
}

#[test]
fn gaps_and_the_frame_cut_a_line_into_pieces_inside_it() {
    let points = [Some((110.0, 60.0)), Some((120.0, 70.0)), None, Some((130.0, 60.0)), None, Some((140.0, 0.0)), Some((150.0, 400.0))];
    let pieces = line(points.into_iter(), FRAME);
    assert_eq!(pieces.len(), 3);
    assert_eq!(pieces[1], vec![(130.0, 60.0)]);
    assert_eq!((pieces[2][0].1, pieces[2][1].1), (50.0, 250.0));
    let back_and_forth = [(0.0, 100.0), (300.0, 100.0), (900.0, 100.0), (300.0, 120.0)];
    assert!(line(back_and_forth.into_iter().map(Some), FRAME).concat().iter().all(|&p| FRAME.contains(p)));
}

#[test]
fn the_contour_of_a_cone_is_a_circle() {
    let grid = Grid::of([-1.0, 1.0], [-1.0, 1.0], 81, 61, |x, y| x.hypot(y));
    let segments = contour(&grid, 0.5);
    assert!(segments.len() > 60);
    assert!(segments.iter().flatten().all(|[x, y]| (x.hypot(*y) - 0.5).abs() < 1e-3));
    let gaps = Grid::of([-1.0, 1.0], [-1.0, 1.0], 9, 9, |x, _| if x > 0.0 { f64::NAN } else { x });
    assert!(contour(&gaps, -0.3).iter().flatten().all(|p| p[0].is_finite()));
    assert!(contour(&Grid { x: [0.0, 1.0], y: [0.0, 1.0], columns: 0, values: vec![] }, 0.0).is_empty());
}

#[test]
fn pooling_keeps_the_burst() {
    let mut grid = Grid::of([0.0, 1.0], [0.0, 1.0], 1001, 333, |_, _| -90.0);
    grid.values[7 * 1001 + 500] = -10.0;
    let cuts: Vec<f64> = (0..=100).map(|i| f64::from(i) / 100.0).collect();
    let small = pool(&grid, &cuts, &cuts);
    assert_eq!(small.len(), 100 * 100);
    // Its cell lies across a cut in both directions.
    let seen: Vec<usize> = small.iter().enumerate().filter(|(_, v)| **v == -10.0).map(|(i, _)| i).collect();
    assert_eq!(seen, [149, 150, 249, 250]);
}

#[test]
fn cells_beyond_the_cuts_are_left_out_and_those_between_keep_their_place() {
    let grid = Grid::of([0.0, 9.0], [0.0, 9.0], 10, 10, |x, y| 10.0 * y + x);
    // The whole grid, cell by cell, is itself.
    let all: Vec<f64> = (0..=10).map(|i| f64::from(i) - 0.5).collect();
    assert_eq!(pool(&grid, &all, &all), grid.values);
    // Columns 3 and 4 of rows 7 and 8, the outer ones by half.
    assert_eq!(pool(&grid, &[3.0, 3.5, 4.5], &[6.5, 7.5, 8.0]), [73.0, 74.0, 83.0, 84.0]);
}
