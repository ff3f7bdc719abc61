use super::*;

const ALL: [&str; 16] = [
    "cf32_le", "cf32_be", "cf64_le", "cf64_be", "ci32_le", "ci16_le", "ci16_be", "cu32_le", "cu16_be", "ci8", "cu8", "rf32_le", "rf64_be",
    "ri16_le", "ri8", "ru8",
];

#[test]
fn a_name_survives_parsing() {
    for name in ALL {
        assert_eq!(name.parse::<Datatype>().unwrap().to_string(), name);
    }
}

#[test]
fn samples_survive_every_datatype_within_half_a_step() {
    let samples = [(0.0, 0.0), (0.5, -0.25), (-1.0, 0.99), (0.123, -0.987)].map(|(re, im)| Complex32::new(re, im));
    for name in ALL {
        let datatype: Datatype = name.parse().unwrap();
        let mut bytes = Vec::new();
        assert_eq!(datatype.encode(&samples, &mut bytes), 0, "{name}");
        assert_eq!(bytes.len(), samples.len() * datatype.bytes());
        let mut back = [Complex32::default(); 4];
        datatype.decode(&bytes, &mut back);
        let step = if datatype.is_integer() { 0.5 / f32::powi(2.0, 8 * datatype.number.bytes() as i32 - 1) } else { 0.0 };
        for (a, b) in samples.iter().zip(back) {
            assert!((a.re - b.re).abs() <= step + 1e-7, "{name}: {a} became {b}");
            assert!((a.im - b.im).abs() <= step + 1e-7 || !datatype.complex, "{name}: {a} became {b}");
        }
    }
}

#[test]
fn integers_saturate_and_are_counted() {
    let loud = [Complex32::new(2.0, 0.0), Complex32::new(f32::NAN, -3.0), Complex32::new(0.1, 0.1), Complex32::new(f32::INFINITY, 0.0)];
    for (name, top, bottom) in [("ci8", 127.0 / 128.0, -1.0), ("cu8", 127.0 / 128.0, -1.0), ("ci16_be", 32767.0 / 32768.0, -1.0)] {
        let datatype: Datatype = name.parse().unwrap();
        let mut bytes = Vec::new();
        assert_eq!(datatype.encode(&loud, &mut bytes), 3, "{name}");
        let mut back = [Complex32::default(); 4];
        datatype.decode(&bytes, &mut back);
        assert_eq!((back[0].re, back[1].re, back[1].im, back[3].re), (top, 0.0, bottom, top), "{name}");
    }
}

#[test]
fn a_missing_byte_order_names_the_remedy() {
    let message = "cf32".parse::<Datatype>().unwrap_err().to_string();
    assert!(message.contains("cf32_le or cf32_be"), "{message}");
    assert!("cf32_el".parse::<Datatype>().unwrap_err().to_string().contains("did you mean 'cf32_le'"));
    assert!("é".parse::<Datatype>().is_err());
}
