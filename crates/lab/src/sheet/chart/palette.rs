//! Colors: one set for the drawings, and the page's replacement of each in dark mode.
//!
//! A drawing has its colors as attributes, which any style sheet overrides. So the page needs no
//! second drawing for dark mode: it has a rule for each color.

use plotters::style::RGBColor;

/// A color in light mode, on white, and in dark mode.
pub struct Colour {
    light: RGBColor,
    dark: RGBColor,
}

/// Text and axes.
pub const INK: Colour = colour(0x33_38_40, 0xD5_D9_DF);
/// Grid lines.
pub const GRID: Colour = colour(0xD9_DC_E1, 0x3C_42_4B);
const OFF: Colour = colour(0xD0_6B_1F, 0xF2_A0_5E);
const ON: Colour = colour(0x1F_6F_B5, 0x6F_B4_F0);

/// Series that have the same color in every chart. Off is warm and on is cold, and A darker than B.
const NAMED: [(&str, Colour); 6] = [
    ("off", OFF),
    ("on", ON),
    ("A off", colour(0xA8_4E_0C, 0xF5_8E_3C)),
    ("B off", colour(0xE9_A8_6C, 0xF7_CB_A4)),
    ("A on", colour(0x12_51_8A, 0x4C_9B_E3)),
    ("B on", colour(0x7F_B5_E0, 0xB0_D7_F7)),
];

/// The colors of all others, in turn.
const OTHERS: [Colour; 8] = [
    colour(0x2F_82_51, 0x6C_C9_91),
    colour(0x82_56_B8, 0xBC_97_E8),
    colour(0xA8_7B_00, 0xE0_BC_4A),
    colour(0xB8_3A_6E, 0xF0_85_B0),
    colour(0x2A_85_8C, 0x66_C6_CC),
    colour(0x8A_5A_3C, 0xCC_9E_82),
    colour(0x5E_68_76, 0xA3_AE_BD),
    colour(0x6C_7A_00, 0xB4_C4_40),
];

/// Returns the color of each of the series of a chart.
pub fn of_series(names: &[&str]) -> Vec<RGBColor> {
    let mut others = OTHERS.iter().cycle();
    let mut colours = Vec::new();
    for name in names {
        let named = NAMED.iter().find(|(it, _)| it == name).map(|(_, colour)| colour);
        // A cycle of something that is not empty has no end.
        colours.extend(named.or_else(|| others.next()).map(Colour::light));
    }
    colours
}

impl Colour {
    /// Returns the color of drawings.
    pub fn light(&self) -> RGBColor {
        self.light
    }
}

/// Returns a color in the form of attributes and style sheets, as the drawings write it.
pub fn code(colour: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2)
}

/// Returns the rules of a style sheet that give each color its dark form.
pub fn dark_rules() -> String {
    let all = [&INK, &GRID].into_iter().chain(NAMED.iter().map(|(_, it)| it)).chain(&OTHERS);
    let rule = |colour: &Colour| {
        let (light, dark) = (code(colour.light), code(colour.dark));
        let fill = format!(".chart [fill=\"{light}\"]{{fill:{dark}}}\n");
        fill + &format!(".chart [stroke=\"{light}\"]{{stroke:{dark}}}\n")
    };
    all.map(rule).collect()
}

const fn colour(light: u32, dark: u32) -> Colour {
    Colour { light: rgb(light), dark: rgb(dark) }
}

const fn rgb(code: u32) -> RGBColor {
    RGBColor((code >> 16) as u8, (code >> 8) as u8, code as u8)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{NAMED, OFF, ON, OTHERS, code, dark_rules, of_series};

    #[test]
    fn off_and_on_have_their_colours_and_others_differ() {
        let colours = of_series(&["thin", "on", "off", "thick"]);
        assert_eq!(colours[1..3], [ON.light, OFF.light]);
        assert_eq!((colours[0], colours[3]), (OTHERS[0].light, OTHERS[1].light));
        assert_eq!(of_series(&["x"; 20]).len(), 20);
    }

    #[test]
    fn every_colour_has_a_rule_for_dark_mode() {
        let all = || NAMED.iter().map(|(_, it)| it).chain(&OTHERS);
        let codes: BTreeSet<String> = all().map(|colour| code(colour.light)).collect();
        assert_eq!(codes.len(), all().count());
        let rules = dark_rules();
        for light in codes {
            assert!(rules.contains(&format!("[fill=\"{light}\"]")), "{light}");
            assert!(rules.contains(&format!("[stroke=\"{light}\"]")), "{light}");
        }
    }
}
