//! Policies that a caller brings along, in place of those that a configuration names.

use agewell_layout::write_anywhere::Allocator;
use agewell_log::policy::placement::PlacementPolicy;
use agewell_log::policy::victim_policy::VictimPolicy;

use crate::config::layout::{Layout, PlacementChoice};
use crate::config::{LayoutExperiment, PolicyNames};
use crate::error::RunError;

/// Policies from outside; what is not there is as the configuration says.
#[derive(Debug, Default)]
pub struct Policies {
    /// Which segment of a log is collected.
    pub victim: Option<Box<dyn VictimPolicy>>,
    /// Which open log of a log a block goes to.
    pub placement: Option<Box<dyn PlacementPolicy>>,
    /// Which free place a write-anywhere layout writes next.
    pub allocator: Option<Box<dyn Allocator>>,
}

impl Policies {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.victim.is_none() && self.placement.is_none() && self.allocator.is_none()
    }

    /// `experiment` with the names of these policies.
    ///
    /// # Errors
    /// If the experiment names one that is not here, or its layout asks no such policy.
    pub(super) fn named_in(
        &self,
        experiment: &LayoutExperiment,
    ) -> Result<LayoutExperiment, RunError> {
        let names = PolicyNames {
            victim: self.victim.as_ref().map(|policy| policy.name()),
            placement: self.placement.as_ref().map(|policy| policy.name()),
            allocator: self.allocator.as_ref().map(|policy| policy.name()),
        };
        require_given(&experiment.policies, &names)?;
        let is_log = matches!(experiment.layout, Layout::Log(_));
        let only_of = |what: &str, kind: &str| {
            let asks = format!("[policies] {what}: only layout.kind = \"{kind}\" asks one");
            Err(RunError::Input(asks))
        };
        match &experiment.layout {
            Layout::Log(log)
                if names.placement.is_some() && log.keys.placement != PlacementChoice::None =>
            {
                return Err(RunError::Input(
                    "[policies] placement: leave out layout.placement, which names another".into(),
                ));
            }
            _ if names.victim.is_some() && !is_log => return only_of("victim", "lfs"),
            _ if names.placement.is_some() && !is_log => return only_of("placement", "lfs"),
            layout if names.allocator.is_some() && !matches!(layout, Layout::WriteAnywhere(_)) => {
                return only_of("allocator", "write-anywhere");
            }
            _ => {}
        }
        Ok(LayoutExperiment { policies: names, ..experiment.clone() })
    }
}

/// # Errors
/// If one of the `named` policies is not among the `given`.
fn require_given(named: &PolicyNames, given: &PolicyNames) -> Result<(), RunError> {
    for (what, named, given) in [
        ("victim", &named.victim, &given.victim),
        ("placement", &named.placement, &given.placement),
        ("allocator", &named.allocator, &given.allocator),
    ] {
        if let Some(name) = named
            && given.is_none()
        {
            return Err(RunError::Input(format!(
                "[policies] {what}: '{name}' is a function, which a configuration names and does not \
                 hold; give it: agewell.run(..., {what}=FUNCTION), or --{what} FILE.py:NAME"
            )));
        }
    }
    Ok(())
}
