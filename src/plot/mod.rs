//! Numbers to pictures, SVG and PNG.
