use super::*;

fn bits(text: &str) -> Vec<u8> {
    text.bytes().filter(|b| !b.is_ascii_whitespace()).map(|b| b - b'0').collect()
}

/// IEEE 802.11-2012, annex L.1: the SIGNAL field of the example frame (36 Mbit/s, 100 bytes) before and after coding and interleaving.
#[test]
fn the_signal_field_of_the_standards_example() {
    let information = bits("101100010011000000000000");
    let coded = bits("110100011010000100000010001111100111000000000000");
    let interleaved = bits("100101001101000000010100100000110010010010010100");
    let mut out = Vec::new();
    convolution::encode(information.iter().copied(), Rate::Half, &mut out);
    assert_eq!(out, coded);
    let mut spread = vec![0; 48];
    Interleaver::new(48, 1, 1).spread(&out, &mut spread);
    assert_eq!(spread, interleaved);
    let soft: Vec<f32> = spread.iter().map(|&b| 1.0 - 2.0 * f32::from(b)).collect();
    assert_eq!(Run::new().decode(&soft, 48, 1, Rate::Half), information);
}

#[test]
fn data_survive_some_lost_bits() {
    let mut code = Code::new(&Config::preset("paper").unwrap(), Rate::Half).unwrap();
    assert_eq!(code.data_bits(), 960 - 32 - 6);
    let data: Vec<u8> = (0..code.data_bits()).map(|n| (n / 3 % 2) as u8).collect();
    let mut soft: Vec<f32> = code.encode(&data).iter().map(|&bit| 1.0 - 2.0 * f32::from(bit)).collect();
    soft[100..120].fill(0.0);
    assert_eq!(code.decode(&soft), Some(&data[..]));
}

/// 17.3.5.5: the all-ones seed gives the 127-bit sequence that starts so.
#[test]
fn the_scrambler_of_the_standard() {
    let expected = bits(
        "0000111011110010110010010000001000100110001011101011011000001100110101001110011110110100001010101111101001010001101110001111111",
    );
    assert_eq!(scrambler(0x7f).to_vec(), expected);
}

#[test]
fn interleaving_permutes_and_matches_the_formula_for_16_qam() {
    for (carriers, bits) in [(48, 1), (48, 2), (48, 4), (48, 6), (48, 8), (53, 4), (600, 6), (16, 1)] {
        for depth in [1, 2, 3, 10] {
            let interleaver = Interleaver::new(carriers, bits, depth);
            let (from, mut to, mut back) = ((0..carriers * bits * 3).collect::<Vec<_>>(), vec![0; carriers * bits * 3], Vec::new());
            interleaver.spread(&from, &mut to);
            interleaver.gather(&to, &mut back);
            assert_eq!(back, from, "{carriers} carriers of {bits} bits, depth {depth}");
        }
    }
    // 192 coded bits, s = 2: k = 17 -> i = 13 -> 12 + (13 + 192 - 1) mod 2 = 12.
    let (from, mut to) = ((0..192).collect::<Vec<_>>(), vec![0; 192]);
    Interleaver::new(48, 4, 1).spread(&from, &mut to);
    assert_eq!(to[12], 17);
}

#[test]
fn puncturing_sends_what_the_standard_sends() {
    for (rate, coded) in [(Rate::Half, 24), (Rate::TwoThirds, 18), (Rate::ThreeQuarters, 16)] {
        let mut out = Vec::new();
        convolution::encode([1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0].into_iter(), rate, &mut out);
        assert_eq!((out.len(), rate.information(coded)), (coded, 12), "{rate}");
    }
}

/// Up to four wrong bits in 48 are corrected, wherever they are: the free distance of the code is 10.
#[test]
fn as_many_errors_are_corrected_as_the_free_distance_allows() {
    let information = bits("1011001110001011 01000000");
    let mut coded = Vec::new();
    convolution::encode(information.iter().copied(), Rate::Half, &mut coded);
    let mut viterbi = Viterbi::new();
    let mut out = vec![0; information.len()];
    for seed in 0..2000usize {
        let mut soft: Vec<f32> = coded.iter().map(|&b| 1.0 - 2.0 * f32::from(b)).collect();
        for error in 0..4 {
            let place = (seed * 7919 + error * (seed % 11 + 3) * 5) % soft.len();
            soft[place] = -(1.0 - 2.0 * f32::from(coded[place]));
        }
        viterbi.decode(&soft, &mut out);
        assert_eq!(out, information, "seed {seed}");
    }
}
