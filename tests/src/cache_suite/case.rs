//! What a case is made of.

/// Cases about one matter.
pub struct Group {
    pub name: &'static str,
    pub cases: Vec<Case>,
}

/// Requests in a row to a URL of the case's own, and what is expected of the cache.
#[derive(Debug, Clone)]
pub struct Case {
    pub id: String,
    pub level: Level,
    /// Where it is said, as `9111 §4.2.1`.
    pub section: &'static str,
    /// What must be true; of [`Level::Observed`] what is asked.
    pub demand: String,
    /// Cases without which this one says nothing: a cache that stores nothing uses nothing wrongly.
    pub needs: Vec<&'static str>,
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The RFC says MUST.
    Required,
    /// The RFC allows both; the more useful thing is this.
    Optimal,
    /// Caches differ, and may.
    Observed,
}

/// A request, what the server behind says if it is asked, and what is expected of what comes back.
///
/// In all texts `{start}`, `{start+5}` and `{start-5}` are dates: so many seconds from the beginning of the case.
#[derive(Debug, Clone)]
pub struct Step {
    pub method: String,
    /// Behind the path of the case.
    pub target: &'static str,
    pub fields: Vec<String>,
    pub body: &'static str,
    /// Seconds since the answer to the step before.
    pub after: u64,
    pub says: Says,
    /// Without which the case says nothing.
    pub given: Vec<Expected>,
    /// What the case is about; of all steps but the last this is given too.
    pub then: Vec<Expected>,
}

/// What the server behind says.
#[derive(Debug, Clone)]
pub struct Says {
    pub manner: Manner,
    pub status: u16,
    pub fields: Vec<String>,
    /// `None`: one that names the case and the run.
    pub body: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manner {
    Whole,
    /// 304 to a request with a condition on what is stored.
    GoodStill,
    /// It says this status with these fields first.
    Interim(u16, &'static str),
    /// It hangs up.
    HangsUp,
    /// It hangs up in the midst of the body.
    BreaksOff,
}

/// What is expected of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// An earlier run's response, and nobody was asked.
    Cached,
    /// An earlier run's response, whoever was asked.
    Kept,
    /// The server behind has made it for this step.
    Forwarded,
    /// An earlier run's response, and the server behind was asked with this field whether it is good still.
    Validated(&'static str),
    /// The response is not of an earlier run.
    NotKept,
    Status(u16),
    Field(String),
    Without(String),
    /// `Age` is there, and not below this.
    AgeFrom(u64),
    /// And not above.
    AgeUpTo(u64),
    Body(&'static str),
    /// What the server behind was asked with.
    Asked(&'static str),
    AskedBy(&'static str),
    Interim(u16),
    NoInterim,
}

fn case(level: Level, id: impl Into<String>, section: &'static str, demand: impl Into<String>) -> Case {
    Case { id: id.into(), level, section, demand: demand.into(), needs: Vec::new(), steps: Vec::new() }
}

pub fn required(id: impl Into<String>, section: &'static str, demand: impl Into<String>) -> Case {
    case(Level::Required, id, section, demand)
}

pub fn optimal(id: impl Into<String>, section: &'static str, demand: impl Into<String>) -> Case {
    case(Level::Optimal, id, section, demand)
}

pub fn observed(id: impl Into<String>, section: &'static str, demand: impl Into<String>) -> Case {
    case(Level::Observed, id, section, demand)
}

impl Case {
    pub fn needs(mut self, id: &'static str) -> Self {
        self.needs.push(id);
        self
    }

    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

pub fn get() -> Step {
    method("GET")
}

/// Whether the server behind is asked is seen by what it says: as a rule the same as before, and not to be stored.
pub fn method(method: &str) -> Step {
    Step {
        method: method.to_owned(),
        target: "",
        fields: Vec::new(),
        body: "",
        after: 0,
        says: Says { manner: Manner::Whole, status: 200, fields: Vec::new(), body: None },
        given: Vec::new(),
        then: Vec::new(),
    }
}

impl Step {
    pub fn at(mut self, target: &'static str) -> Self {
        self.target = target;
        self
    }

    /// Fields of the request, with ` | ` between them.
    pub fn with(mut self, fields: &str) -> Self {
        self.fields = lines(fields);
        self
    }

    pub fn sends(mut self, body: &'static str) -> Self {
        self.body = body;
        self
    }

    pub fn after(mut self, seconds: u64) -> Self {
        self.after = seconds;
        self
    }

    /// Fields of the response of the server behind, with ` | ` between them.
    pub fn says(mut self, fields: &str) -> Self {
        self.says.fields = lines(fields);
        self
    }

    pub fn by_status(mut self, status: u16) -> Self {
        self.says.status = status;
        self
    }

    pub fn by_body(mut self, body: &'static str) -> Self {
        self.says.body = Some(body);
        self
    }

    pub fn in_manner(mut self, manner: Manner) -> Self {
        self.says.manner = manner;
        self
    }

    /// What is stored is good still, says the server behind, with these fields.
    pub fn good_still(self, fields: &str) -> Self {
        self.says(fields).in_manner(Manner::GoodStill)
    }

    pub fn given(mut self, expected: Expected) -> Self {
        self.given.push(expected);
        self
    }

    pub fn then(mut self, expected: Expected) -> Self {
        self.then.push(expected);
        self
    }

    pub fn cached(self) -> Self {
        self.then(Expected::Cached)
    }

    pub fn forwarded(self) -> Self {
        self.then(Expected::Forwarded)
    }

    pub fn validated(self, condition: &'static str) -> Self {
        self.then(Expected::Validated(condition))
    }

    pub fn status(self, status: u16) -> Self {
        self.then(Expected::Status(status))
    }

    pub fn field(self, field: impl Into<String>) -> Self {
        self.then(Expected::Field(field.into()))
    }

    pub fn without(self, name: impl Into<String>) -> Self {
        self.then(Expected::Without(name.into()))
    }
}

fn lines(fields: &str) -> Vec<String> {
    fields.split(" | ").filter(|field| !field.is_empty()).map(Into::into).collect()
}
