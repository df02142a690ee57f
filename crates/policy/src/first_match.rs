//! First-match evaluation, common to all rule lists.

/// Conditions on flows, which are described by an `F`.
pub trait Match<F: ?Sized> {
    /// Returns whether all conditions hold for a flow. Allocates nothing.
    fn matches(&self, flow: &F) -> bool;
}

/// A rule with its action.
impl<F: ?Sized, R: Match<F>, A> Match<F> for (R, A) {
    fn matches(&self, flow: &F) -> bool {
        self.0.matches(flow)
    }
}

/// Returns the first rule that matches a flow.
pub fn first_match<'r, F: ?Sized, R: Match<F>>(rules: &'r [R], flow: &F) -> Option<&'r R> {
    rules.iter().find(|rule| rule.matches(flow))
}
