//! What a person asks for, as the command line and Python hand it over in JSON.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::job::{Job, Outputs, TargetChoice};
use super::recipe::Recipe;
use super::{Hold, ReplayOptions, SyncEvery, Until};
use crate::onto::{Allocation, Data, DirectoryOptions};
use crate::path_text;
use crate::simulated_layout::LayoutSetup;
use crate::{AgeError, NO_TIME};

/// A replay as it is asked for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
pub struct Request {
    #[serde(deserialize_with = "path_text::read")]
    workload: PathBuf,
    #[serde(default, deserialize_with = "path_text::read")]
    directory: Option<PathBuf>,
    #[serde(default)]
    layout: Option<Value>,
    #[serde(default, deserialize_with = "path_text::read")]
    recipe: Option<PathBuf>,
    #[serde(default)]
    copies: Option<u32>,
    #[serde(default)]
    streams: Option<u16>,
    #[serde(default)]
    utilization: Option<f64>,
    #[serde(default)]
    hold: Option<Hold>,
    #[serde(default)]
    sync_every: Option<String>,
    #[serde(default)]
    until: Vec<String>,
    #[serde(default)]
    daily: bool,
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    allocate: Option<Allocation>,
    #[serde(default)]
    contents: Option<Data>,
    #[serde(default)]
    chunk: Option<String>,
    #[serde(default)]
    threads: Option<usize>,
    #[serde(default)]
    allow_occupied: bool,
    #[serde(default)]
    allow_system_disk: bool,
    #[serde(default)]
    resume: bool,
    #[serde(default, deserialize_with = "path_text::read")]
    state: Option<PathBuf>,
    /// The time now, nanoseconds since 1970: when a snapshot of a directory is taken.
    #[serde(default)]
    now_ns: Option<i64>,
    #[serde(default)]
    outputs: Outputs,
}

impl Request {
    /// Reads `text`, JSON.
    ///
    /// # Errors
    /// If it is not a request.
    pub fn read(text: &str) -> Result<Self, AgeError> {
        serde_json::from_str(text)
            .map_err(|why| AgeError::Input(format!("the request to age a target: {why}")))
    }

    /// The replay that is asked for.
    ///
    /// # Errors
    /// If parts do not go together or cannot be understood.
    pub fn job(self) -> Result<Job, AgeError> {
        let recipe = self.recipe.as_deref().map(Recipe::read).transpose()?;
        let options = match &recipe {
            Some(recipe) => self.with_recipe(recipe)?,
            None => self.options()?,
        };
        Ok(Job {
            target: self.target(recipe.as_ref())?,
            workload: self.workload,
            options,
            resume: self.resume,
            checkpoint: self.state,
            expected_sha256: recipe.map(|recipe| recipe.workload.sha256),
            outputs: self.outputs,
        })
    }

    fn options(&self) -> Result<ReplayOptions, AgeError> {
        let default = ReplayOptions::default();
        let options = ReplayOptions {
            copies: self.copies.unwrap_or(default.copies),
            streams: self.streams,
            utilization: self.utilization,
            live_limit: None,
            hold: self.hold.unwrap_or_default(),
            sync_every: self.sync_every.as_deref().map(SyncEvery::parse).transpose()?,
            until: self.until.iter().map(|text| Until::parse(text)).collect::<Result<_, _>>()?,
            daily: self.daily,
            seed: self.seed.unwrap_or(default.seed),
        };
        options.check()?;
        Ok(options)
    }

    /// The options of `recipe`; none that would change its operations may be given beside it.
    fn with_recipe(&self, recipe: &Recipe) -> Result<ReplayOptions, AgeError> {
        let given = [
            ("--copies", self.copies.is_some()),
            ("--streams", self.streams.is_some()),
            ("--utilization", self.utilization.is_some()),
            ("--hold", self.hold.is_some()),
            ("--sync-every", self.sync_every.is_some()),
            ("--until", !self.until.is_empty()),
            ("--seed", self.seed.is_some()),
        ];
        if let Some((name, _)) = given.iter().find(|(_, given)| *given) {
            return Err(AgeError::Input(format!(
                "{name} would make other operations than the recipe's; leave out one of the two"
            )));
        }
        Ok(ReplayOptions { daily: recipe.replay.daily || self.daily, ..recipe.replay.clone() })
    }

    fn target(&self, recipe: Option<&Recipe>) -> Result<TargetChoice, AgeError> {
        let used = recipe.map_or(&Value::Null, |recipe| &recipe.target);
        if let Some(path) = &self.directory {
            let options = self.directory_options(used)?;
            return Ok(TargetChoice::Directory { path: path.clone(), options });
        }
        let Some(layout) = self.layout_over(used.get("layout")) else {
            return Err(AgeError::Input(
                "no target: name a directory, ffs, ffs+realloc, lfs or early-unix".to_owned(),
            ));
        };
        self.refuse_what_only_directories_heed()?;
        let setup = LayoutSetup::read(layout).map_err(|why| AgeError::Input(why.to_string()))?;
        Ok(TargetChoice::Simulated(setup))
    }

    /// The layout asked for: whole where it names its kind, else parameters in place of those of
    /// the recipe's layout. `None` where neither names a kind.
    fn layout_over(&self, of_recipe: Option<&Value>) -> Option<Value> {
        let mut layout = match (&self.layout, of_recipe) {
            (Some(given), _) if given.get("kind").is_some() => return Some(given.clone()),
            (_, Some(used)) => used.clone(),
            (_, None) => return None,
        };
        if let (Some(all), Some(Value::Object(given))) = (layout.as_object_mut(), &self.layout) {
            all.extend(given.clone());
        }
        Some(layout)
    }

    /// An option that would have no effect is a mistake of the one who gave it.
    fn refuse_what_only_directories_heed(&self) -> Result<(), AgeError> {
        if self.resume {
            return Err(AgeError::Input(
                "a simulated target keeps nothing to resume; run it again without --resume"
                    .to_owned(),
            ));
        }
        let given = [
            ("--allocate", self.allocate.is_some()),
            ("--contents", self.contents.is_some()),
            ("--chunk", self.chunk.is_some()),
            ("--threads", self.threads.is_some()),
            ("--state", self.state.is_some()),
            ("--allow-occupied", self.allow_occupied),
            ("--allow-system-disk", self.allow_system_disk),
        ];
        match given.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((name, _)) => Err(AgeError::Input(format!(
                "{name} means something below a directory only, and this target is simulated; \
                 leave it out"
            ))),
        }
    }

    /// As asked, else as in the recipe, else by default.
    fn directory_options(&self, used: &Value) -> Result<DirectoryOptions, AgeError> {
        let default = DirectoryOptions::default();
        let chunk_bytes = match &self.chunk {
            Some(text) => agewell_core::parse_bytes(text)
                .map_err(|why| AgeError::Input(format!("--chunk: {why}")))?,
            None => used["chunk_bytes"].as_u64().unwrap_or(default.chunk_bytes),
        };
        let of_recipe = |key: &str| used.get(key).cloned().unwrap_or(Value::Null);
        let allocation: Option<Allocation> =
            serde_json::from_value(of_recipe("allocate")).unwrap_or_default();
        let used_contents: Option<Data> =
            serde_json::from_value(of_recipe("data")).unwrap_or_default();
        Ok(DirectoryOptions {
            allocation: self.allocate.or(allocation).unwrap_or_default(),
            data: self.contents.or(used_contents).unwrap_or_default(),
            chunk_bytes,
            threads: self.threads.unwrap_or(default.threads),
            seed: self.seed.unwrap_or(default.seed),
            allow_occupied: self.allow_occupied,
            allow_system_disk: self.allow_system_disk,
            now_ns: self.now_ns.unwrap_or(NO_TIME),
        })
    }
}
