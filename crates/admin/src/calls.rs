//! The calls: from a request to its answer.

mod changes;
mod configuration;
mod load;
mod profile;

use crate::answer::{Answer, ok, text};
use crate::certificate::CertificateList;
use crate::control::{Control, Readiness};
use crate::dashboard;
use crate::failure::Failure;
use crate::pool::Queue;
use crate::query;
use crate::router::{Call, Found};
use crate::task::{TaskList, TaskOrder};
use crate::thread::ThreadList;
use configuration::{Editing, Place};
use http::Request;
use hyper::body::Incoming;
use serde_json::json;
use std::sync::Arc;
use std::time::SystemTime;

const CERTIFICATES: &str = "application/pem-certificate-chain";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What is asked, and what the calls have in common.
pub(crate) struct Shared {
    pub control: Arc<dyn Control>,
    editing: Arc<Editing>,
}

impl Shared {
    pub fn new(control: Arc<dyn Control>) -> Self {
        Self { control, editing: Arc::default() }
    }
}

/// Carries out what was asked for.
pub(crate) async fn answer(
    shared: &Shared,
    found: &Found<'_>,
    request: Request<Incoming>,
) -> Result<Answer, Failure> {
    let control = &shared.control;
    let query = request.uri().query();
    match found.call {
        Call::Dashboard => Ok(dashboard::page()),
        Call::DashboardFile => dashboard::file(found.rest),
        Call::Description => Ok(text("application/json", include_str!("../openapi.json"))),
        Call::Threads => Ok(ok(&ThreadList::new(control.threads().await?, SystemTime::now()))),
        Call::ThreadStack => Ok(ok(&control.stack(query::thread(query)?).await?)),
        Call::Profile => profile::take(control, query).await,
        Call::AddThreads => changes::add(control, query).await,
        Call::RemoveThreads => changes::remove(control, query).await,
        Call::RestartWorkers => {
            query::none(query)?;
            changes::restart_workers(control).await
        }
        Call::RestartNative => {
            query::none(query)?;
            changes::restart_native(control).await
        }
        Call::Queue => Ok(ok(&Queue::of(control.pools().await?))),
        Call::Statistics => Ok(ok(&control.statistics().await?)),
        Call::Certificates => Ok(ok(&CertificateList { certificates: control.certificates().await })),
        Call::Upstreams => Ok(ok(&control.upstreams())),
        Call::Authority => Ok(ok(&control.authority().await.ok_or(Failure::NoAuthority)?)),
        Call::AuthorityChain => {
            let authority = control.authority().await.ok_or(Failure::NoAuthority)?;
            Ok(text(CERTIFICATES, authority.chain()))
        }
        Call::Tasks => Ok(ok(&TaskList { tasks: control.tasks() })),
        Call::RunTask => changes::order(control, query, TaskOrder::Run),
        Call::RestartTask => changes::order(control, query, TaskOrder::Restart),
        Call::StopTask => changes::order(control, query, TaskOrder::Stop),
        Call::Cache => Ok(ok(&control.cache())),
        Call::PurgeCache => changes::purge(control, query).await,
        Call::Ready => ready(control.readiness().await),
        Call::Live => Ok(ok(&json!({ "live": true }))),
        Call::Metrics => Ok(text(PROMETHEUS, control.metrics().await)),
        Call::Stop => {
            query::none(query)?;
            Ok(stop(&**control))
        }
        Call::Configuration => {
            query::none(query)?;
            configuration::read(shared, Place::Path(found.rest)).await
        }
        Call::Object => {
            query::none(query)?;
            configuration::read(shared, Place::Id(found.rest)).await
        }
        Call::ChangeConfiguration => configuration::change(shared, Place::Path(found.rest), request).await,
        Call::ChangeObject => configuration::change(shared, Place::Id(found.rest), request).await,
        Call::Load => load::load(shared, request).await,
        Call::Reload => load::reload(control, query).await,
        Call::Upgrade => changes::upgrade(control, query).await,
        Call::Adapt => load::adapt(shared, request).await,
    }
}

fn ready(readiness: Readiness) -> Result<Answer, Failure> {
    match readiness {
        Readiness::Ready => Ok(ok(&json!({ "ready": true }))),
        Readiness::NotReady(reason) => Err(Failure::NotReady(reason)),
    }
}

fn stop(control: &dyn Control) -> Answer {
    tracing::info!("stopping, as asked for by the admin API");
    control.stop();
    ok(&json!({ "stopping": true }))
}
