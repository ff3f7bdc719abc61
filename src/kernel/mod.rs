//! Kernels: the similarity of two windows of samples.
