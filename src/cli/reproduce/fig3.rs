//! stub
use super::Size;
use super::report::Report;
use crate::Result;
pub(super) fn run(_: &Size, _: &mut Report) -> Result<()> {
    Ok(())
}
