//! Colours and strokes: the same filter looks the same in every picture.

pub(crate) use crate::filter::registry::Dash;
use crate::filter::registry::{Hue, RECIPES};

/// An opaque colour: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    /// `#rrggbb`.
    pub(crate) fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

impl Dash {
    /// Lengths of dash, gap, ... for a line of unit width; empty when solid.
    pub(crate) fn pattern(self) -> &'static [f64] {
        match self {
            Self::Solid => &[],
            Self::Dashed => &[4.5, 2.5],
            Self::Dotted => &[1.2, 2.0],
            Self::Mixed => &[5.0, 2.0, 1.2, 2.0],
        }
    }
}

/// The look of a line or of dots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Style {
    /// Colour of stroke and dots.
    pub colour: Colour,
    /// Broken how.
    pub dash: Dash,
    /// Line width, or diameter of dots, in px of an 800 px wide figure.
    pub width: f64,
    /// 0 invisible, 1 opaque.
    pub opacity: f64,
}

impl Style {
    /// A solid, opaque stroke.
    pub(crate) const fn solid(colour: Colour, width: f64) -> Self {
        Self { colour, dash: Dash::Solid, width, opacity: 1.0 }
    }

    /// The same with another dash.
    pub(crate) const fn dash(self, dash: Dash) -> Self {
        Self { dash, ..self }
    }

    /// The same with another width.
    pub(crate) const fn width(self, width: f64) -> Self {
        Self { width, ..self }
    }

    /// The same with another opacity.
    pub(crate) const fn opacity(self, opacity: f64) -> Self {
        Self { opacity, ..self }
    }
}

pub(crate) const WHITE: Colour = Colour(0xff, 0xff, 0xff);
/// Text.
pub(crate) const INK: Colour = Colour(0x22, 0x22, 0x22);
/// Frames, ticks and reference lines.
pub(crate) const FRAME: Colour = Colour(0x80, 0x80, 0x80);
pub(crate) const GRID: Colour = Colour(0xe4, 0xe4, 0xe4);
/// Repeats behind their mean; measured dots behind a learned curve.
pub(crate) const PALE: Colour = Colour(0xb4, 0xb4, 0xb4);

const BLACK: Colour = Colour(0x00, 0x00, 0x00);
// Dark enough to be told from the green without red or green cones.
const GREY: Colour = Colour(0x50, 0x50, 0x50);
// Okabe and Ito (2008) without its yellow, which is lost on white; Tol's wine, olive and indigo where eight are not enough.
const ORANGE: Colour = Colour(0xe6, 0x9f, 0x00);
const SKY: Colour = Colour(0x56, 0xb4, 0xe9);
const GREEN: Colour = Colour(0x00, 0x9e, 0x73);
pub(crate) const BLUE: Colour = Colour(0x00, 0x72, 0xb2);
pub(crate) const VERMILLION: Colour = Colour(0xd5, 0x5e, 0x00);
const PINK: Colour = Colour(0xcc, 0x79, 0xa7);
const WINE: Colour = Colour(0x88, 0x22, 0x55);
const OLIVE: Colour = Colour(0x8a, 0x8a, 0x2b);
const INDIGO: Colour = Colour(0x33, 0x22, 0x88);

/// For taps, channels and names that the table does not know, in the order in which they are told apart best.
const CYCLE: [Colour; 8] = [BLUE, ORANGE, GREEN, PINK, SKY, VERMILLION, WINE, OLIVE];
const DASHES: [Dash; 4] = [Dash::Solid, Dash::Dashed, Dash::Mixed, Dash::Dotted];

fn colour(hue: Hue) -> Colour {
    match hue {
        Hue::Grey => GREY,
        Hue::Orange => ORANGE,
        Hue::Sky => SKY,
        Hue::Green => GREEN,
        Hue::Blue => BLUE,
        Hue::Vermillion => VERMILLION,
        Hue::Pink => PINK,
        Hue::Wine => WINE,
        Hue::Olive => OLIVE,
        Hue::Indigo => INDIGO,
    }
}

/// What is drawn besides the filters of the registry: names without case and punctuation.
const TABLE: [(&str, Colour, Dash); 21] = [
    ("gmprls", WINE, Dash::Mixed),
    ("mp", WINE, Dash::Dashed),
    ("hammerstein", VERMILLION, Dash::Dashed),
    ("equivariant", GREEN, Dash::Dashed),
    ("gp", BLACK, Dash::Dotted),
    ("exactgp", BLACK, Dash::Dotted),
    ("exact", BLACK, Dash::Dotted),
    ("rx", GREY, Dash::Solid),
    ("received", GREY, Dash::Solid),
    ("tx", GREEN, Dash::Solid),
    ("prediction", BLUE, Dash::Solid),
    ("error", VERMILLION, Dash::Solid),
    ("noise", FRAME, Dash::Dotted),
    ("floor", FRAME, Dash::Dotted),
    ("truth", BLACK, Dash::Dashed),
    ("true", BLACK, Dash::Dashed),
    ("mean", INK, Dash::Solid),
    ("theory", BLACK, Dash::Dashed),
    ("measured", PALE, Dash::Solid),
    ("estimate", BLUE, Dash::Solid),
    ("learned", VERMILLION, Dash::Solid),
];

const WIDTH: f64 = 1.8;

fn bare(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The look of what is called `name`: that of the filter or of the table, else by the first word of the name ("fklms, M=500" looks like "fklms"), else one that the
/// letters of the name choose, so that it is the same in the next picture and in the next run.
pub(crate) fn style_of(name: &str) -> Style {
    let find = |key: &str| {
        let filters =
            RECIPES.iter().flat_map(|r| std::iter::once(&r.name).chain(r.aliases).map(|name| (bare(name), colour(r.look.0), r.look.1)));
        let others = TABLE.iter().map(|&(name, colour, dash)| (name.to_owned(), colour, dash));
        filters.chain(others).find(|(known, ..)| known == key).map(|(_, colour, dash)| Style::solid(colour, WIDTH).dash(dash))
    };
    let first = name.split(|c: char| c.is_whitespace() || "(,:/=".contains(c)).next().unwrap_or("");
    find(&bare(name)).or_else(|| find(&bare(first))).unwrap_or_else(|| {
        // FNV-1a: std's hashers promise no stability between releases.
        let hash = bare(name).bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        let mixed = (hash ^ (hash >> 32)) as usize;
        Style::solid(CYCLE[mixed % CYCLE.len()], WIDTH).dash(DASHES[mixed / CYCLE.len() % 3])
    })
}

/// [`style_of`] for each of `names`, where a look that an earlier one has already taken gets another dash, then another colour.
pub(crate) fn styles_of<S: AsRef<str>>(names: &[S]) -> Vec<Style> {
    let mut taken: Vec<Style> = Vec::with_capacity(names.len());
    for name in names {
        let own = style_of(name.as_ref());
        let others = DASHES.iter().map(|&dash| own.dash(dash));
        let more = DASHES.iter().flat_map(|&dash| CYCLE.iter().map(move |&colour| Style { colour, dash, ..own }));
        let style = std::iter::once(own).chain(others).chain(more).find(|style| !taken.contains(style)).unwrap_or(own);
        taken.push(style);
    }
    taken
}

/// The look of the `index`-th of several equals: taps, antennas, repeats.
pub(crate) fn style_at(index: usize) -> Style {
    Style::solid(CYCLE[index % CYCLE.len()], WIDTH).dash(DASHES[index / CYCLE.len() % DASHES.len()])
}

/// Viridis at `at` in 0..=1: dark to light, monotone in lightness, so that it survives grey printing. NaN is white.
pub(crate) fn viridis(at: f64) -> Colour {
    const STOPS: [Colour; 9] = [
        Colour(0x44, 0x01, 0x54),
        Colour(0x47, 0x2d, 0x7b),
        Colour(0x3b, 0x52, 0x8b),
        Colour(0x2c, 0x72, 0x8e),
        Colour(0x21, 0x91, 0x8c),
        Colour(0x28, 0xae, 0x80),
        Colour(0x5e, 0xc9, 0x62),
        Colour(0xad, 0xdc, 0x30),
        Colour(0xfd, 0xe7, 0x25),
    ];
    if at.is_nan() {
        return WHITE;
    }
    let place = at.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let index = (place as usize).min(STOPS.len() - 2);
    let t = place - index as f64;
    let (a, b) = (STOPS[index], STOPS[index + 1]);
    let mix = |a: u8, b: u8| (f64::from(a) + t * (f64::from(b) - f64::from(a))).round() as u8;
    Colour(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_filters_all_look_different() {
        let names: Vec<_> = RECIPES.iter().map(|r| r.name).chain(["gmp-rls", "gp"]).collect();
        let styles: Vec<_> = names.iter().map(|name| style_of(name)).collect();
        for (i, a) in styles.iter().enumerate() {
            assert!(!styles[..i].contains(a), "{}", names[i]);
        }
    }

    #[test]
    fn variants_of_one_filter_share_its_colour_and_differ_in_dash() {
        let styles = styles_of(&["fklms M=20", "fklms M=500", "fklms M=1000"]);
        assert!(styles.iter().all(|s| s.colour == style_of("fklms").colour));
        assert!(styles[0] != styles[1] && styles[1] != styles[2] && styles[0] != styles[2]);
        let many: Vec<_> = (0..40).map(|_| "nlms").collect();
        assert_eq!(styles_of(&many).len(), 40);
    }

    #[test]
    fn the_map_is_clamped_and_knows_nan() {
        assert_eq!(viridis(-3.0), viridis(0.0));
        assert_eq!(viridis(f64::INFINITY), Colour(0xfd, 0xe7, 0x25));
        assert_eq!(viridis(f64::NAN), WHITE);
    }

    #[test]
    fn a_filter_has_one_look_however_it_is_written() {
        assert_eq!(style_of("krls-t"), style_of("KRLST"));
        assert_eq!(style_of("fklms (M = 500)").colour, style_of("fklms").colour);
    }
}
