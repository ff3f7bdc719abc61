//! The simulated test bed: amplifiers, fading, noise and offsets, pure and seeded.
